"""Requests for a recording of ten hours and their cost: playlists, key frames, a clip of a minute."""

import pathlib
import socket
import time
import urllib.parse

from harness import publishers
from harness.weir import Weir

from . import meter, peers

HOURS = 10
#: Publishing speed as a multiple of real time. The later requests do not depend on it.
RATE = 400


def _cpu(pid: int) -> int:
    """Nanoseconds of CPU of all its threads: the clock ticks of /proc/PID/stat are too coarse here."""
    total = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except OSError:
            continue
    return total


def _ask(server: Weir, path: str) -> tuple[float, float, float, int]:
    """Milliseconds to the head and to the end of the response body, milliseconds of CPU, and bytes."""
    parts = urllib.parse.urlsplit(server.web)
    with socket.create_connection((parts.hostname, parts.port)) as connection:
        connection.sendall("GET /healthz HTTP/1.1\r\nHost: bench\r\n\r\n".encode())
        connection.recv(65536)
        before, began = _cpu(server.process.pid), time.perf_counter()
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n".encode())
        size, first = 0, None
        while data := connection.recv(1 << 20):
            if first is None:
                first = time.perf_counter() - began
                assert data.startswith(b"HTTP/1.1 200 "), data[:200]
            size += len(data)
        took = time.perf_counter() - began
        return first * 1000, took * 1000, (_cpu(server.process.pid) - before) / 1e6, size


def run(rounds: int) -> str:
    with peers.folder("/var/tmp") as home:
        (home / "first").mkdir()
        server = Weir("--keep-free", "0MB", "--window", "16s", "--log-level", "error", folder=home / "first",
                      recordings=home / "recordings")
        try:
            loops = HOURS * 3600 // 8 - 1
            publishers.ffmpeg("h264-30", f"{server.rtmp}/live/cam", rate=RATE, loop=loops).wait(1200)
            server.wait(lambda: server.json("/api/v1/recordings?state=completed")["total"], 60, "it is finished")
            recording = server.json("/api/v1/recordings")["recordings"][0]
            server.stop()
        finally:
            server.kill()
        print(f"ten hours: {recording['seconds']:.0f} s, {recording['bytes'] / 1e9:.2f} GB, {len(recording['gaps'])} gaps", flush=True)
        base = recording["url"].removesuffix(".mp4")
        api = f"/api/v1/recordings/cam/{recording['file']}"
        middle = recording["seconds"] / 2
        asked = {"HLS playlist (`av/index.m3u8`)": f"{base}/av/index.m3u8", "DASH manifest": f"{base}/manifest.mpd",
                 "key frames (`keyframes`)": f"{api}/keyframes",
                 "clip of a minute from the middle": f"{api}/clip?from={middle:.3f}&to={middle + 60:.3f}"}
        rows: dict[tuple[str, str], list[tuple[float, float, float, int]]] = {}
        for turn in range(rounds):
            for what, path in asked.items():
                again = home / f"again-{turn}-{len(what)}"
                again.mkdir()
                # A server that has not opened the recording yet reads its index first.
                server = Weir("--log-level", "error", folder=again, recordings=home / "recordings")
                try:
                    rows.setdefault((what, "first"), []).append(_ask(server, path))
                    rows.setdefault((what, "again"), []).append(_ask(server, path))
                    server.stop()
                finally:
                    server.kill()
    body = [[what, when, f"{min(f[0] for f in found):.1f}", meter.spread([f[0] for f in found]),
             meter.spread([f[2] for f in found]), f"{found[0][3]:,}"] for (what, when), found in rows.items()]
    return (f"A recording of {HOURS} hours ({recording['bytes'] / 1e9:.1f} GB) of which a server has seen nothing, and asked "
            f"again; {rounds} rounds.\n\n"
            + meter.table(["what", "asked", "first byte, ms, quickest", "median (min–max)", "CPU, ms", "bytes"], body))
