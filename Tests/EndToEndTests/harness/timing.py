"""How long things take on a machine that also does other things."""

import time


def quickest(action, tries: int = 3) -> float:
    """Seconds of the quickest of some tries: others that use the machine can only make it slower."""
    taken = []
    for _ in range(tries):
        began = time.monotonic()
        action()
        taken.append(time.monotonic() - began)
    return min(taken)
