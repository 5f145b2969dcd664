"""Whether the machine itself keeps time. A virtual machine stands still while its host serves others, or is given a
fraction of its cores; what happens in real time then says nothing of weir. A process of real-time priority, which nothing
on this machine delays, notes how late it wakes up and how long the same little work takes.

    python metronome.py FILE           notes, until its standard input ends
    python metronome.py --calm S MOST  waits until the machine has kept time for S seconds, at most MOST
"""

import dataclasses
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

#: Seconds between two looks; of lateness that is noted; between two measurements of speed.
BEAT, LATE, MEASURE = 0.02, 0.05, 0.5
#: What is counted, and the seconds that this takes on a machine of the kind that the tests' limits were found on.
COUNTS, USUAL_SECONDS = 20_000, 0.00032
#: A test cannot be judged when the machine stood still for so many seconds of it, or had less than this share of its speed.
MOST_STILL, LEAST_SPEED = 0.5, 0.4


@dataclasses.dataclass
class Kept:
    """How a machine kept time for a while."""

    still: float = 0
    speed: float = 1

    @property
    def is_well(self) -> bool:
        return self.still < MOST_STILL and self.speed >= LEAST_SPEED

    def __str__(self) -> str:
        return f"the machine stood still for {self.still:.2f} s and had {self.speed:.0%} of its usual speed"


def takes_priority() -> bool:
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError:
        return False
    return True


def counting_seconds() -> float:
    began, total = time.monotonic(), 0
    for number in range(COUNTS):
        total += number
    return time.monotonic() - began


def beats(until=lambda: False):
    """Yields ("late", when, seconds) and ("work", when, seconds) until told to end."""
    now = time.monotonic()
    measured = 0.0
    while not until():
        time.sleep(BEAT)
        before, now = now, time.monotonic()
        if now - before - BEAT > LATE:
            yield "late", now, now - before - BEAT
        if now - measured > MEASURE:
            measured = now
            yield "work", now, counting_seconds()
            now = time.monotonic()


def judged(notes) -> Kept:
    """Of ("late" | "work", when, seconds)."""
    notes = list(notes)
    work = [seconds for kind, _, seconds in notes if kind == "work"]
    speed = min(1, USUAL_SECONDS / statistics.median(work)) if work else 1
    return Kept(sum(seconds for kind, _, seconds in notes if kind == "late"), speed)


class Metronome:
    """Runs beside the tests; tells of any stretch of time since it began."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.process = subprocess.Popen([sys.executable, __file__, str(path)], stdin=subprocess.PIPE)
        # Where it may not have its priority it is over at once, and all is taken to be well.
        while not path.exists() and self.process.poll() is None:
            time.sleep(0.01)

    def between(self, start: float, end: float) -> Kept:
        """By time.monotonic()."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        notes = [(kind, float(when), float(seconds)) for kind, when, seconds in map(str.split, lines)]
        return judged(note for note in notes if start <= note[1] <= end + LATE)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def note(path: pathlib.Path) -> None:
    if not takes_priority():
        return
    with path.open("w", buffering=1) as out:
        ended = lambda: bool(select.select([sys.stdin], [], [], 0)[0])  # noqa: E731  (nothing is ever sent)
        for kind, when, seconds in beats(ended):
            out.write(f"{kind} {when:.3f} {seconds:.6f}\n")


def wait_for_calm(seconds: float, most: float) -> bool:
    if not takes_priority():
        return True
    began, notes = time.monotonic(), []
    for kind, when, value in beats(lambda: time.monotonic() - began > most):
        notes = [n for n in [*notes, (kind, when, value)] if n[1] > when - seconds]
        if when - began > seconds and judged(notes).still < MOST_STILL / 4 and judged(notes).speed >= LEAST_SPEED:
            return True
    return False


if __name__ == "__main__":
    if sys.argv[1] == "--calm":
        sys.exit(0 if wait_for_calm(float(sys.argv[2]), float(sys.argv[3])) else 1)
    note(pathlib.Path(sys.argv[1]))
