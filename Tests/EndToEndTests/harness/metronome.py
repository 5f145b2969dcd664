"""Measures whether the machine itself keeps time. A virtual machine stands still while its host runs others, or gets a
fraction of its cores. Timing results from such a time say nothing about weir. A process of the highest priority, which
nothing on this machine delays, records how late it wakes up, and how long a fixed small task takes. It also tells how many
processes wait for a processor (room.py).

    python metronome.py FILE           records until its standard input ends
"""

import dataclasses
import os
import pathlib
import select
import statistics
import subprocess
import sys
import time

#: Seconds between two checks; smallest recorded lateness in seconds; seconds between two measurements of speed.
BEAT, LATE, MEASURE = 0.02, 0.05, 0.5
#: Length of the task, and the seconds it takes on a machine of the kind for which the limits of the tests were chosen.
COUNTS, USUAL_SECONDS = 20_000, 0.0006
#: Weight of a new reading in the mean number of processes that wait.
NEW = 0.04
#: What measures time cannot be judged if the machine stood still for so many seconds at once, within so many before it failed.
MOST_STILL, BEFORE = 0.2, 5


@dataclasses.dataclass
class Kept:
    """How well a machine kept time during a period: seconds that it stood still, in all and at once, and its share of the
    usual speed."""

    still: float = 0
    longest: float = 0
    speed: float = 1

    def __str__(self) -> str:
        return f"the machine stood still for {self.still:.2f} s, {self.longest:.2f} s at once, and had {self.speed:.0%} of its usual speed"


def takes_priority() -> bool:
    """Takes real-time priority. Where a container refuses it, the lowest `nice` value: about eighty times the processor share of
    an ordinary process."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        return True
    except OSError:
        pass
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -20)
        return True
    except OSError:
        return False


def counting_seconds() -> float:
    began, total = time.monotonic(), 0
    for number in range(COUNTS):
        total += number
    return time.monotonic() - began


def queue_file(beats: pathlib.Path) -> pathlib.Path:
    """Where a metronome that writes `beats` tells how many run or wait for each processor, in the mean of the last half second."""
    return beats.with_suffix(".queue")


def waiting() -> float:
    """Processes that run or wait for a processor, without this one, divided by the number of processors."""
    with open("/proc/loadavg") as file:
        return (int(file.read().split()[3].split("/")[0]) - 1) / (os.cpu_count() or 1)


def beats(until=lambda: False):
    """Yields ("late", when, seconds), ("work", when, seconds) and ("queue", when, processes) until it is stopped."""
    now = time.monotonic()
    measured = queue = 0.0
    while not until():
        time.sleep(BEAT)
        before, now = now, time.monotonic()
        queue += NEW * (waiting() - queue)
        yield "queue", now, queue
        if now - before - BEAT > LATE:
            yield "late", now, now - before - BEAT
        if now - measured > MEASURE:
            measured = now
            yield "work", now, counting_seconds()
            now = time.monotonic()


def judged(notes) -> Kept:
    """From records of ("late" | "work", when, seconds)."""
    notes = list(notes)
    work = [seconds for kind, _, seconds in notes if kind == "work"]
    speed = min(1, USUAL_SECONDS / statistics.median(work)) if work else 1
    late = [seconds for kind, _, seconds in notes if kind == "late"]
    return Kept(sum(late), max(late, default=0), speed)


def between(path: pathlib.Path, start: float, end: float) -> Kept:
    """Of a record that is being written. Period by time.monotonic()."""
    lines = path.read_text().splitlines() if path.exists() else []
    notes = [(kind, float(when), float(seconds)) for kind, when, seconds in map(str.split, lines)]
    return judged(note for note in notes if start <= note[1] <= end + LATE)


def held_up(path: pathlib.Path) -> str:
    """Why what fails now cannot be judged; empty if it can."""
    now = time.monotonic()
    kept = between(path, now - BEFORE, now)
    return f"the machine stood still for {kept.longest:.2f} s at once in the {BEFORE} s before" if kept.longest >= MOST_STILL else ""


class Metronome:
    """Runs beside the tests. It reports on any period since it began."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        path.unlink(missing_ok=True)
        self.process = subprocess.Popen([sys.executable, __file__, str(path)], stdin=subprocess.PIPE)
        # Without the right to a higher priority it ends at once, and all periods count as good.
        while not path.exists() and self.process.poll() is None:
            time.sleep(0.01)

    def between(self, start: float, end: float) -> Kept:
        return between(self.path, start, end)

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def note(path: pathlib.Path) -> None:
    if not takes_priority():
        return
    with path.open("w", buffering=1) as out, queue_file(path).open("wb", buffering=0) as queue:
        ended = lambda: bool(select.select([sys.stdin], [], [], 0)[0])  # noqa: E731  (nothing is ever sent)
        for kind, when, measured in beats(ended):
            if kind == "queue":
                os.pwrite(queue.fileno(), b"%8.2f" % measured, 0)
            else:
                out.write(f"{kind} {when:.3f} {measured:.6f}\n")


if __name__ == "__main__":
    note(pathlib.Path(sys.argv[1]))
