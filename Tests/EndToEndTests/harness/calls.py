"""Failing calls of the C library: the n-th call of a kind fails once, in a running server and its workers (calls.c)."""

import errno
import mmap
import pathlib
import struct
import subprocess

#: In the order of calls.c.
KINDS = ("none", "open", "create", "memory-file", "accept", "socket", "event", "pipe", "duplicate", "map", "read", "write",
         "grow", "sync", "name")
#: Which call fails, and how.
FAULTS = [
    *((kind, "EMFILE") for kind in ("open", "memory-file", "accept", "socket", "event", "pipe", "duplicate")),
    *((kind, "ENOMEM") for kind in ("map", "memory-file")),
    *((kind, "ENOSPC") for kind in ("create", "write", "grow", "name")),
    *((kind, "EIO") for kind in ("open", "read", "write", "sync", "name")),
]
SOURCE = pathlib.Path(__file__).with_name("calls.c")


class Calls:
    """Controls the calls of programs that were started with `environment`."""

    def __init__(self, folder: pathlib.Path):
        library, control = folder / "calls.so", folder / "calls"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True, timeout=60)
        control.write_bytes(bytes(16))
        self.environment = {"LD_PRELOAD": str(library), "TEST_CALLS": str(control)}
        with open(control, "r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 16)

    def arm(self, kind: str, error: str, nth: int) -> None:
        self.disarm()
        struct.pack_into("iii", self._memory, 4, getattr(errno, error), nth, 0)
        struct.pack_into("i", self._memory, 0, KINDS.index(kind))

    def disarm(self) -> None:
        struct.pack_into("i", self._memory, 0, 0)

    @property
    def has_failed(self) -> bool:
        return struct.unpack_from("i", self._memory, 12)[0] > 0

    def close(self) -> None:
        self._memory.close()
