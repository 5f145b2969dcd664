"""Room on the processors. Where many processes wait for a processor, one more makes all of them late and is done no sooner.

The metronome measures how many wait. Where it does not run, there is always room."""

import fcntl
import os
import pathlib
import tempfile
import time

from . import metronome

#: Processes that may run or wait for each processor when a test begins. The metronome wakes together with other processes, so it
#: counts about five where the mean is three.
MOST = 5
#: Seconds to wait for room. Then the test begins all the same.
PATIENCE = 10


def wait() -> float:
    """Waits for room, and returns the seconds that it took. Processes that wait are let in one after another."""
    beats = os.environ.get("WEIR_BEATS")
    if not beats or _waiting(pathlib.Path(beats)) <= MOST:
        return 0
    began = time.monotonic()
    folder = pathlib.Path(tempfile.gettempdir()) / f"weir-tokens-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    with open(folder / "room", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        while _waiting(pathlib.Path(beats)) > MOST and time.monotonic() < began + PATIENCE:
            time.sleep(0.05)
    return time.monotonic() - began


def _waiting(beats: pathlib.Path) -> float:
    try:
        return float(metronome.queue_file(beats).read_text() or 0)
    except (OSError, ValueError):
        return 0
