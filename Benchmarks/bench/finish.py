"""Finishing recordings: weir inserts the head at the front, ffmpeg rewrites the file. Also the cost of recording.

Each on its own file systems (loop-mounted ext4 and XFS), with bytes counted at their block device.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

from harness import publishers, tools
from harness.disks import Disk, command
from harness.weir import Weir

from . import meter, mux, peers

#: Speed of the film of 40 Mbit/s, as a multiple of real time.
RATE = 16


class Blocks:
    """Bytes that the disk itself reads and writes between two moments."""

    def __init__(self, disk: Disk):
        self.path = pathlib.Path(f"/sys/dev/block/{disk.device}/stat")
        self.before = self._now()

    def _now(self) -> tuple[int, int]:
        fields = self.path.read_text().split()
        return int(fields[2]) * 512, int(fields[6]) * 512

    def since(self) -> tuple[int, int]:
        read, written = self._now()
        return read - self.before[0], written - self.before[1]


def _cached(path: pathlib.Path) -> str:
    done = command("fincore", "-b", "-n", "-o", "RES", path, check=False)
    return f"{int(done.stdout) / 1e6:.0f} MB" if done.returncode == 0 else "unknown"


def _extents(path: pathlib.Path) -> str:
    found = re.search(rb"(\d+) extents? found", command("filefrag", path, check=False).stdout)
    return found[1].decode() if found else "unknown"


def _record(disk: Disk, home: pathlib.Path, gigabytes: float) -> Weir:
    """A server with a recording of this size that waits for its publisher to return."""
    home.mkdir(parents=True)
    weir = Weir("--keep-free", "0MB", "--window", "6s", "--reconnect-window", "1h", "--log-level", "warning",
                folder=home, recordings=disk.path / "recordings")
    publisher = publishers.ffmpeg("heavy", f"{weir.rtmp}/live/cam", loop=-1, rate=RATE)
    try:
        weir.wait(lambda: ((weir.stream("cam") or {}).get("recording") or {}).get("bytes", 0) >= gigabytes * 1e9,
                  gigabytes * 60 + 30, f"{gigabytes} GB are recorded", every=0.2)
    finally:
        publisher.kill()
    weir.wait_state("cam", "reconnecting")
    time.sleep(3)
    os.sync()
    return weir


def _finish(disk: Disk, home: pathlib.Path, gigabytes: float) -> tuple[list[str], pathlib.Path]:
    """Time and bytes of finishing at a stop."""
    weir = _record(disk, home / "stop", gigabytes)
    part = next((disk.path / "recordings").glob("cam/*.part.mp4"))
    shape = [_cached(part), _extents(part)]
    blocks = Blocks(disk)
    began = time.monotonic()
    weir.process.send_signal(signal.SIGTERM)
    weir.process.wait(60)
    took = time.monotonic() - began
    command("sync", "-f", disk.path)
    read, written = blocks.since()
    weir.kill()
    movie = next((disk.path / "recordings").glob("cam/*.mp4"))
    assert ".part." not in movie.name, "it was not finished"
    return [f"{took:.2f}", f"{read / 1e6:.1f}", f"{written / 1e6:.1f}", *shape], movie


def _faststart(disk: Disk, movie: pathlib.Path) -> list[str]:
    out = disk.path / "out.mp4"
    shape = [_cached(movie), _extents(movie)]
    blocks = Blocks(disk)
    began = time.monotonic()
    subprocess.run([tools.FFMPEG, "-v", "error", "-nostdin", "-y", "-i", str(movie), "-c", "copy", "-movflags",
                    "+faststart", str(out)], check=True)
    command("sync", "-f", disk.path)
    took = time.monotonic() - began
    read, written = blocks.since()
    out.unlink()
    return [f"{took:.2f}", f"{read / 1e6:.1f}", f"{written / 1e6:.1f}", *shape]


def _salvage(disk: Disk, home: pathlib.Path, gigabytes: float) -> list[str]:
    """Time and bytes of a start with leftovers of a killed server, none of which is in the page cache."""
    weir = _record(disk, home / "kill", gigabytes)
    weir.process.kill()
    weir.kill()
    part = next((disk.path / "recordings").glob("cam/*.part.mp4"))
    pathlib.Path("/proc/sys/vm/drop_caches").write_text("3")
    shape = [_cached(part), _extents(part)]
    blocks = Blocks(disk)
    again = home / "again"
    again.mkdir()
    began = time.monotonic()
    weir = Weir(folder=again, recordings=disk.path / "recordings", patience=120)
    took = time.monotonic() - began
    command("sync", "-f", disk.path)
    read, written = blocks.since()
    weir.stop()
    return [f"{took:.2f}", f"{read / 1e6:.1f}", f"{written / 1e6:.1f}", *shape]


def run(sizes: list[float]) -> str:
    rows = []
    for kind in ("ext4", "xfs"):
        for size in sizes:
            with peers.folder("/var/tmp") as home, Disk(kind, int(size * 3500) + 600) as disk:
                name = f"{kind}, {size:g} GB"
                own, movie = _finish(disk, home, size)
                rows.append([name, "**weir**, at the stop", *own])
                theirs = _faststart(disk, movie)
                rows.append([name, "ffmpeg 5.1 `-c copy -movflags +faststart`", *theirs])
                movie.unlink()
                rows.append([name, "**weir**, a start after kill -9", *_salvage(disk, home, size)])
                print(f"finish {name}: weir {own[0]} s, ffmpeg {theirs[0]} s, salvage {rows[-1][2]} s", flush=True)
    text = ("Finishing recordings of 40 Mbit/s on loop-mounted file systems; seconds until the process is gone (weir) or "
            "the file is synced (ffmpeg), bytes by the block device.\n\n")
    return text + meter.table(
        ["file", "way", "s", "MB read", "MB written", "of the file cached", "extents"], rows)


def cost(rounds: int) -> str:
    """CPU of recording: the difference of a server with and without it, against ffmpeg's muxer."""
    rows: dict[str, list[float]] = {}
    with peers.folder("/var/tmp") as folder, peers.folder("/dev/shm") as memory:
        data = mux.Input(memory)

        def weir(*flags: str) -> tuple[float, int]:
            """CPU seconds and recorded bytes. Media is dropped if the disk cannot keep up."""
            with peers.folder("/var/tmp") as home:
                server = Weir(*flags, "--window", "16s", "--log-level", "error", folder=home)
                try:
                    before = meter.cpu_seconds(server.process.pid)
                    mux.publish(server.rtmp, data)
                    server.wait_state("bench", "ended", seconds=60)
                    server.wait(lambda: not list(server.recordings.glob("*/*.part.mp4")), 60, "it is finished")
                    took = meter.cpu_seconds(server.process.pid) - before
                    return took, sum(path.stat().st_size for path in server.recordings.glob("*/*.mp4"))
                finally:
                    server.kill()

        def ffmpeg() -> float:
            return mux.ended(
                subprocess.Popen([tools.FFMPEG, "-v", "error", "-i", str(data.file), "-c", "copy", "-f", "mp4", "-y",
                                  str(folder / "out.mp4")], stdin=subprocess.DEVNULL), folder / "out.mp4")

        for turn in range(rounds + 1):
            (with_it, recorded), (without, _) = weir("--keep-free", "0MB"), weir("--no-record")
            found = {"**weir**, what recording adds": (with_it - without) / (recorded / 1e9),
                     "ffmpeg 5.1 `-c copy -f mp4`": ffmpeg() / (data.bytes / 1e9)}
            for name, value in found.items():
                if turn:
                    rows.setdefault(name, []).append(value)
    return "CPU of recording to a disk.\n\n" + meter.table(
        ["way", "CPU s/GB"], [[name, meter.spread(values)] for name, values in rows.items()])
