"""Tokens that processes share: of a kind, so many at a time have one. What plays, and what encodes, uses the cores by which
others measure time."""

import contextlib
import fcntl
import os
import pathlib
import tempfile
import time

#: How many at a time: pages that play, encoders of video.
TOKENS = {"browser": 2, "encoder": 1}
#: Seconds to wait for one: the longest test that holds one, a few times over.
PATIENCE = 300
#: Seconds for which this process has waited for tokens. They are no time of a test's.
waited = 0.0


@contextlib.contextmanager
def token(kind: str):
    """Holds a token of `kind`, and waits for one before. The kernel takes it back from a process that ends."""
    folder = pathlib.Path(tempfile.gettempdir()) / f"weir-tokens-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    files = [open(folder / f"{kind}-{number}", "w") for number in range(TOKENS[kind])]
    global waited
    began = time.monotonic()
    end = began + PATIENCE
    try:
        while not any(_locked(file) for file in files):
            if time.monotonic() > end:
                raise AssertionError(f"no token of kind {kind} is free after {PATIENCE} s: {TOKENS[kind]} processes hold {folder}/{kind}-*")
            time.sleep(0.05)
        waited += time.monotonic() - began
        yield
    finally:
        for file in files:
            file.close()


def _locked(file) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
