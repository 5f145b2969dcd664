"""The instructions that a server runs for a request (steps.c, x86-64). Unlike its time, they are the same beside other work."""

import collections
import ctypes
import errno
import os
import pathlib
import platform
import time

import pytest

from . import disks

FOLDER = pathlib.Path(__file__).parent


def built(folder: pathlib.Path, name: str, *flags: str) -> pathlib.Path:
    """A library of a file beside this one."""
    disks.needs("cc", root=False)
    library = folder / f"{name}.so"
    disks.command("cc", "-shared", "-fPIC", *flags, "-o", library, FOLDER / f"{name}.c")
    return library


class Steps:
    """The thread of a server that answers on one connection. To be used by the thread that makes it."""

    #: A response takes more. If another thread gives it, this one has hardly begun.
    LEAST = 2_000
    MOST = 4_000_000

    def __init__(self, folder: pathlib.Path, process: int, socket: int, ask):
        """`ask` sends a request by the connection, and returns a function that takes the response."""
        if platform.machine() != "x86_64":
            pytest.skip("skipped: registers of other processors are not known")
        self.library = ctypes.CDLL(str(built(folder, "steps", "-O1")))
        self.library.steps_run.restype = ctypes.c_long
        self.library.steps_run.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_double, ctypes.c_void_p, ctypes.c_long)
        self.addresses = (ctypes.c_ulong * self.MOST)()
        self.process, self.socket, self.thread = process, socket, 0
        try:
            self._find(ask)
        except BaseException:
            self.close()
            raise

    def _find(self, ask) -> None:
        for task in pathlib.Path(f"/proc/{self.process}/task").iterdir():
            if not (task / "comm").read_text().startswith("NIO-"):
                continue
            begun = self.library.steps_begin(int(task.name))
            if begun == -errno.EPERM:
                pytest.skip("skipped: processes may not be traced here")
            assert begun == 0, os.strerror(-begun)
            self.thread = int(task.name)
            if self.run(ask).total() > self.LEAST:
                return
            self.close()
        raise AssertionError("no event loop answers on this connection")

    def run(self, ask) -> collections.Counter[int]:
        """How often each instruction runs, from the arrival of a request to the response."""
        self._wait_for_idleness()
        stopped = self.library.steps_stop(self.thread)
        assert stopped == 0, os.strerror(-stopped)
        take = ask()
        count = self.library.steps_run(self.thread, self.socket, 120, self.addresses, self.MOST)
        assert count > 0, os.strerror(-count)
        take()
        return collections.Counter(self.addresses[:count])

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


def apart(some: list[collections.Counter[int]], others: list[collections.Counter[int]]) -> dict[int, float]:
    """Instructions that ran more often in each of one list than in any of the other one; the usual difference for each. What depends
    on time, or on other threads, comes in both."""
    found = {}
    for address in set().union(*some, *others):
        a, b = [one[address] for one in some], [one[address] for one in others]
        if max(a) < min(b) or max(b) < min(a):
            found[address] = sum(a) / len(a) - sum(b) / len(b)
    return found
