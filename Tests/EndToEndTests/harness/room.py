"""Room on the processors. Where many wait for one already, what begins makes all of them late, and is done no sooner itself.

The metronome measures how many wait. Nothing runs without it: then there is always room."""

import fcntl
import os
import pathlib
import tempfile
import time

from . import metronome

#: So many may run or wait for each processor before others begin. The metronome counts those that wake up with it, too, so that
#: three are five.
MOST = 5
#: Seconds to wait for room; then the machine is busy for good.
PATIENCE = 10


def wait() -> float:
    """Waits for room, one after another, and returns the seconds that it took. What it lets in begins at once."""
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
