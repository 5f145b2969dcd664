"""Resources of a process, measured repeatedly: memory, shared memory, descriptors, threads."""

import dataclasses
import os
import pathlib
import statistics
import threading
import time

MEBIBYTE = 1 << 20


@dataclasses.dataclass(frozen=True)
class Sample:
    """One measurement: its time in seconds since the first, resident bytes, and bytes in memfds. Descriptors of memfds (one
    per segment) are counted separately from the others."""

    at: float
    resident: int
    shared: int
    descriptors: int
    threads: int
    cpu: float  # seconds, since the process began


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process, since it began (proc_pid_stat(5))."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def look(pid: int, began: float) -> Sample:
    status = dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
    shared = count = 0
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            if os.readlink(entry.path).startswith("/memfd:"):
                shared += os.stat(entry.path).st_blocks * 512
            else:
                count += 1
        except FileNotFoundError:
            pass  # closed meanwhile
    return Sample(time.monotonic() - began, int(status["VmRSS"].split()[0]) << 10, shared, count, int(status["Threads"]),
                  cpu_seconds(pid))


class Gauges:
    """Measures at an interval in seconds until it is stopped, and writes each measurement as a row of a table."""

    def __init__(self, pid: int, every: float, table: pathlib.Path):
        self.samples: list[Sample] = []
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(pid, every, table), daemon=True)
        self._thread.start()

    def _run(self, pid: int, every: float, table: pathlib.Path) -> None:
        began = time.monotonic()
        with open(table, "w", buffering=1) as out:
            print(*(field.name for field in dataclasses.fields(Sample)), sep="\t", file=out)
            while not self._ending.wait(max(0, began + len(self.samples) * every - time.monotonic())):
                try:
                    self.samples.append(look(pid, began))
                except (FileNotFoundError, ProcessLookupError, KeyError):
                    return  # it has ended
                print(*dataclasses.astuple(self.samples[-1]), sep="\t", file=out)

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(5)


def slope(samples: list[Sample], value: str) -> float:
    """Growth per second: the slope of the least-squares line."""
    return statistics.linear_regression([s.at for s in samples], [getattr(s, value) for s in samples]).slope


def rise(samples: list[Sample], value: str) -> float:
    """The median of the last quarter minus that of the first."""
    quarter = max(1, len(samples) // 4)
    first, last = ([getattr(s, value) for s in part] for part in (samples[:quarter], samples[-quarter:]))
    return statistics.median(last) - statistics.median(first)
