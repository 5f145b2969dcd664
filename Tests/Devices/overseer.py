"""Runs a command for so many seconds at most, and notes how long its threads ran and how long they waited for a processor:

    overseer.py SECONDS FILE COMMAND...

FILE becomes {"seconds", "ran", "waited"}, of which the last two are sums over all threads. It is written anew twice a second.
The exit status is the command's, or 124 where it did not end in time.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

limit, note, command = float(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3:]
began, threads = time.monotonic(), {}
process = subprocess.Popen(command)
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda *_: process.terminate())


def look() -> None:
    """Threads that have ended stay counted. `schedstat` has nanoseconds that a thread ran, and that it waited."""
    for task in pathlib.Path(f"/proc/{process.pid}/task").glob("*/schedstat"):
        try:
            ran, waited = map(int, task.read_text().split()[:2])
        except (OSError, ValueError):
            continue
        threads[task.parent.name] = (ran, waited)
    ran, waited = (sum(times) / 1e9 for times in zip((0, 0), *threads.values()))
    new = note.with_suffix(".new")
    new.write_text(json.dumps({"seconds": time.monotonic() - began, "ran": ran, "waited": waited}))
    os.replace(new, note)


while True:
    try:
        sys.exit(process.wait(0.5))
    except subprocess.TimeoutExpired:
        look()
    if time.monotonic() - began > limit:
        process.kill()
        process.wait()
        sys.exit(124)
