"""File systems in files, for one test each. They can be filled, frozen and cut off."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import struct
import subprocess
import tempfile
import time

import pytest

MAKERS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"], "btrfs": ["mkfs.btrfs", "-q", "-f"],
          "ext2": ["mkfs.ext2", "-q", "-F"], "ext3": ["mkfs.ext3", "-q", "-F"]}


def needs(*programs: str, root: bool = True) -> None:
    """Skips the test with a reason if it cannot run here."""
    if root and os.geteuid() != 0:
        pytest.skip("skipped: only root can mount file systems and make them fail")
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"skipped: {program} is not installed")


def needs_rights(*line) -> None:
    """Skips the test where this root may not do what `line` tries: in a container, for example."""
    tried = command(*line, check=False)
    if tried.returncode != 0:
        pytest.skip(f"skipped: this root may not: {' '.join(map(str, line))}: {tried.stdout.decode().strip()}")


def command(*parts, check: bool = True) -> subprocess.CompletedProcess:
    return subprocess.run([str(part) for part in parts], check=check, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)


class Faults:
    """A context in which system calls of a running weir fail or kill it. `faults` are values of strace's `inject=`:
    `fsync:error=EIO`, `pwrite64:signal=KILL:when=2`. They are counted for each thread from here on. If `paths` are given,
    only calls on these paths count."""

    def __init__(self, weir, trace: pathlib.Path, *faults: str, paths: tuple[pathlib.Path, ...] = ()):
        needs("strace", root=False)
        calls = ",".join(fault.split(":")[0] for fault in faults)
        line = ["strace", "-f", "-qq", "-y", "-o", trace, "-e", f"trace={calls}"]
        for fault in faults:
            line += ["-e", f"inject={fault}"]
        for path in paths:
            line += ["-P", path]
        self.process = subprocess.Popen([str(part) for part in [*line, "-p", weir.process.pid]],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        tasks = pathlib.Path(f"/proc/{weir.process.pid}/task")

        def are_followed() -> bool:
            # A thread may end meanwhile.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                return all("TracerPid:\t0" not in (task / "status").read_text() for task in tasks.iterdir())
            return False

        weir.wait(are_followed, 20, "strace follows each of its threads", every=0.02)

    def __enter__(self) -> "Faults":
        return self

    def __exit__(self, *_) -> None:
        """Detaches from the process."""
        self.process.send_signal(2)
        self.process.communicate(timeout=30)


class Disk:
    """A context with a mounted file system in a file."""

    def __init__(self, kind: str, megabytes: int, *options: str):
        """`options` of the program that creates it: `-b 1024` for blocks of 1 KiB."""
        needs(MAKERS[kind][0], "mount")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-disk-", dir="/var/tmp"))
        self.image = self.folder / "image"
        self.path = self.folder / "mounted"
        self.path.mkdir()
        self.kind = kind
        self.frozen = False
        with open(self.image, "wb") as image:
            image.truncate(megabytes << 20)
        command(*MAKERS[kind], *options, self.image)
        self.mount()

    def mount(self, options: str = "loop") -> None:
        done = command("mount", "-o", options, self.image, self.path, check=False)
        if done.returncode != 0:
            shutil.rmtree(self.folder, ignore_errors=True)
            pytest.skip(f"skipped: {self.kind} cannot be mounted here: {done.stdout.decode().strip()}")

    def restart(self) -> None:
        """Mounts the content of the disk after `cut_power`. It mounts a copy, because other mount namespaces may still have
        the disk that was shut down."""
        command("umount", self.path)
        copy = self.folder / f"image-{time.monotonic_ns()}"
        command("cp", "--sparse=always", self.image, copy)
        self.image.unlink()
        self.image = copy
        self.mount("loop,nouuid" if self.kind == "xfs" else "loop")

    def remount(self) -> None:
        """Unmounts and mounts again, so that later reads come from the disk."""
        command("umount", self.path)
        self.mount()

    @property
    def device(self) -> str:
        """The loop device, as major:minor."""
        return command("findmnt", "-n", "-o", "MAJ:MIN", self.path).stdout.decode().strip()

    def cut_power(self) -> None:
        """Cuts the power: data that is not on the disk now is lost."""
        needs("xfs_io")
        command("xfs_io", "-x", "-c", "shutdown", self.path)

    def freeze(self) -> None:
        command("fsfreeze", "-f", self.path)
        self.frozen = True

    def thaw(self) -> None:
        if self.frozen:
            command("fsfreeze", "-u", self.path)
        self.frozen = False

    def lose(self, path: pathlib.Path, offset: int) -> range:
        """Loses the block that holds a byte of a file, on the disk but not in memory, as after a failed write. Returns the
        lost bytes of the file."""
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            size = struct.unpack("i", fcntl.ioctl(file, 2, bytes(4)))[0]  # FIGETBSZ
            place = struct.unpack("i", fcntl.ioctl(file, 1, struct.pack("i", offset // size)))[0]  # FIBMAP
        with open(self.image, "r+b") as image:
            image.seek(place * size)
            image.write(bytes(size))
        begin = offset // size * size
        return range(begin, begin + size)

    def take_away(self) -> None:
        """Removes the device: all operations on it fail."""
        device = command("findmnt", "-n", "-o", "SOURCE", self.path).stdout.decode().strip()
        os.truncate(self.image, 0)
        if command("losetup", "-c", device, check=False).returncode != 0:
            pytest.skip("skipped: this kernel cannot take a loop device's size away")

    def fill(self, leaving_megabytes: float) -> pathlib.Path:
        """Fills the file system up to the given number of free megabytes. Returns the file that takes the space."""
        ballast = self.path / "ballast"
        free = os.statvfs(self.path)
        size = free.f_bavail * free.f_frsize - int(leaving_megabytes * (1 << 20))
        command("fallocate", "-l", max(size, 4096), ballast)
        return ballast

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *_) -> None:
        self.thaw()
        if command("umount", self.path, check=False).returncode != 0:
            command("umount", "-l", self.path, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)
