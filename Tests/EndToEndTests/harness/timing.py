"""Timing on a machine that also does other work."""

import time


def quickest(action, tries: int = 3) -> float:
    """Seconds of the fastest of several tries, because other work can only make a try slower."""
    taken = []
    for _ in range(tries):
        began = time.monotonic()
        action()
        taken.append(time.monotonic() - began)
    return min(taken)
