"""Control groups (version 1) for one test each."""

import os
import pathlib
import time

import pytest

from . import tools


class MemoryGroup:
    """A control group (version 1) with a memory limit; `skip` if it cannot be created."""

    ROOT = pathlib.Path("/sys/fs/cgroup/memory")

    def __init__(self, limit: int):
        own = next((line.split(":", 2)[2] for line in open("/proc/self/cgroup").read().splitlines()
                    if "memory" in line.split(":", 2)[1].split(",")), None)
        if own is None:
            pytest.skip("there are no memory control groups of version 1 here")
        self.folder = self.ROOT / f"weir-test-{os.getpid()}"
        try:
            self.folder.mkdir()
            (self.folder / "memory.limit_in_bytes").write_text(str(limit))
        except OSError as error:
            if self.folder.exists():
                self.folder.rmdir()
            pytest.skip(f"cannot make a memory control group: {error}")

    def program(self, folder: pathlib.Path) -> pathlib.Path:
        """Starts weir inside it."""
        path = folder / "little-memory"
        path.write_text(f'#!/bin/sh\necho $$ > {self.folder}/cgroup.procs\nexec "{tools.weir_binary()}" "$@"\n')
        path.chmod(0o755)
        return path

    def add(self, process: int) -> None:
        """Memory that the process takes from now on counts."""
        (self.folder / "cgroup.procs").write_text(str(process))

    def kills(self) -> int:
        text = (self.folder / "memory.oom_control").read_text()
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith("oom_kill ")))

    @property
    def most(self) -> int:
        return int((self.folder / "memory.max_usage_in_bytes").read_text())

    def remove(self) -> None:
        for _ in range(50):
            try:
                self.folder.rmdir()
                return
            except OSError:
                time.sleep(0.1)
