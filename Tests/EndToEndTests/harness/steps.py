"""Counts the instructions that a server runs for a request (steps.c). Unlike its time, their number is the same beside other work."""

import ctypes
import errno
import os
import pathlib
import time

import pytest

from . import disks

FOLDER = pathlib.Path(__file__).parent


def built(folder: pathlib.Path, name: str) -> pathlib.Path:
    """A library of a file beside this one."""
    disks.needs("cc", root=False)
    library = folder / f"{name}.so"
    disks.command("cc", "-shared", "-fPIC", "-O1", "-o", library, FOLDER / f"{name}.c")
    return library


class Steps:
    """The thread of a server that answers on one connection. To be used by the thread that makes it."""

    #: A response takes more. If another thread gives it, this one has hardly begun.
    LEAST = 2_000

    def __init__(self, library: pathlib.Path, process: int, socket: int, ask):
        """`ask` sends a request by the connection, and returns a function that takes the response."""
        self.library = ctypes.CDLL(str(library))
        self.library.steps_count.restype = ctypes.c_long
        self.library.steps_count.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_double)
        self.process, self.socket, self.thread = process, socket, 0
        try:
            self._find(ask)
        except BaseException:
            self.close()
            raise

    def _find(self, ask) -> None:
        tasks = pathlib.Path(f"/proc/{self.process}/task")
        for task in tasks.iterdir():
            if not (task / "comm").read_text().startswith("NIO-"):
                continue
            begun = self.library.steps_begin(int(task.name))
            if begun == -errno.EPERM:
                pytest.skip("skipped: processes may not be traced here")
            assert begun == 0, os.strerror(-begun)
            self.thread = int(task.name)
            if self.count(ask) > self.LEAST:
                return
            self.close()
        raise AssertionError("no event loop answers on this connection")

    def count(self, ask) -> int:
        """The instructions from the arrival of a request to the response."""
        self._wait_for_idleness()
        stopped = self.library.steps_stop(self.thread)
        assert stopped == 0, os.strerror(-stopped)
        take = ask()
        count = self.library.steps_count(self.thread, self.socket, 30)
        assert count > 0, os.strerror(-count)
        take()
        return count

    def _wait_for_idleness(self) -> None:
        """It has done what comes after a response."""
        end = time.monotonic() + 10
        while (state := self._state()) != "S":
            assert time.monotonic() < end, f"the thread is busy: {state}"
            time.sleep(0.002)

    def _state(self) -> str:
        return pathlib.Path(f"/proc/{self.process}/task/{self.thread}/stat").read_text().rsplit(")", 1)[1].split()[0]

    def close(self) -> None:
        """Lets the thread go: a process with one that is followed does not end."""
        if self.thread:
            self.library.steps_end(self.thread)
            self.thread = 0
