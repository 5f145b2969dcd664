"""Resources of a process tree: CPU from /proc/PID/stat, and memory with each page counted exactly once."""

import os
import pathlib
import statistics

TICK = os.sysconf("SC_CLK_TCK")


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for parent in found:
        try:
            for task in pathlib.Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """User and system seconds of the tree, including children that have ended."""
    return sum(split_cpu_seconds(pid))


def split_cpu_seconds(pid: int) -> tuple[float, float]:
    user = system = 0
    for member in tree(pid):
        try:
            fields = pathlib.Path(f"/proc/{member}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        user += int(fields[11]) + int(fields[13])
        system += int(fields[12]) + int(fields[14])
    return user / TICK, system / TICK


def memory_bytes(pid: int) -> dict[str, int]:
    """Proportional resident memory of the tree without shared memory, plus all pages of its memfds, mapped or not."""
    resident = 0
    files: dict[int, int] = {}
    for member in tree(pid):
        try:
            rollup = dict(
                line.split(":", 1) for line in pathlib.Path(f"/proc/{member}/smaps_rollup").read_text().splitlines()[1:])
            resident += 1024 * (_kilobytes(rollup["Pss"]) - _kilobytes(rollup.get("Pss_Shmem", "0 kB")))
            for entry in pathlib.Path(f"/proc/{member}/fd").iterdir():
                try:
                    if "memfd:" in os.readlink(entry):
                        status = os.stat(entry)
                        files[status.st_ino] = status.st_blocks * 512
                except OSError:
                    continue
        except OSError:
            continue
    return {"resident": resident, "memfd": sum(files.values()), "total": resident + sum(files.values())}


def _kilobytes(text: str) -> int:
    return int(text.split()[0])


def median(values) -> float:
    return statistics.median(values)


def spread(values) -> str:
    """`median (min–max)` with three significant digits."""
    return f"{_three(median(values))} ({_three(min(values))}–{_three(max(values))})"


def _three(value: float) -> str:
    if value == 0:
        return "0"
    digits = 2 - (len(str(int(abs(value)))) - 1) if abs(value) >= 1 else 3
    return f"{value:.{max(digits, 0)}f}"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"
