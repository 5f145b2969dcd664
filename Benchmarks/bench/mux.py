"""RTMP to fragmented MP4 as fast as possible: weir against ffmpeg -c copy, and against copying the bytes."""

import subprocess
import time

from harness import tools
from harness.programs import free_port
from harness.rawrtmp import RawRTMP

from . import film, meter, peers

SECONDS = 600
FRAGMENTED = ["-c", "copy", "-movflags", "+frag_keyframe+empty_moov+default_base_moof", "-f", "mp4", "-y"]


class Input:
    """Ten minutes of 5 Mbit/s with B-frames: as RTMP bytes, and as an FLV file; both in memory (tmpfs)."""

    def __init__(self, folder):
        headers, media = film.media("5M", SECONDS)
        self.headers = b"".join(film.message(tag) for tag in headers)
        self.media = b"".join(film.message(tag) for tag in media)
        self.samples = len(media)
        self.bytes = sum(len(tag.body) for tag in media)
        self.file = folder / "input.flv"
        with open(self.file, "wb") as out:
            out.write(b"FLV\x01\x05\0\0\0\x09\0\0\0\0")
            for tag in [*headers, *media]:
                stamp = (tag.milliseconds & 0xFFFFFF).to_bytes(3, "big") + bytes([tag.milliseconds >> 24])
                body = tag.body
                if tag.type == 18 and body.startswith(b"\x02\x00\x0d@setDataFrame"):
                    body = body[16:]
                out.write(bytes([tag.type]) + len(body).to_bytes(3, "big") + stamp + b"\0\0\0" + body
                          + (len(body) + 11).to_bytes(4, "big"))


def publish(rtmp: str, data: Input) -> None:
    """Sends everything as fast as the server reads it."""
    with RawRTMP(rtmp, timeout=300) as client:
        client.handshake()
        client.connect()
        client.set_chunk_size(film.CHUNK_SIZE)
        client.publish("bench")
        client.socket.settimeout(300)
        client.socket.sendall(data.headers)
        view = memoryview(data.media)
        for at in range(0, len(view), 1 << 20):
            client.socket.sendall(view[at : at + (1 << 20)])
            client.drain()
        client.command("FCUnpublish", None, "bench")
        client.command("deleteStream", None, client.stream)
        time.sleep(0.05)


def weir(data: Input) -> float:
    with peers.weir("--window", "16s") as server:
        before = meter.cpu_seconds(server.process.pid)
        publish(server.rtmp, data)
        server.wait_state("bench", "ended", seconds=60)
        return meter.cpu_seconds(server.process.pid) - before


def ffmpeg_from_rtmp(data: Input, folder) -> float:
    port = free_port()
    out = folder / "out.mp4"
    process = subprocess.Popen(
        [tools.FFMPEG, "-v", "error", "-listen", "1", "-i", f"rtmp://127.0.0.1:{port}/live/bench", *FRAGMENTED, str(out)],
        stdin=subprocess.DEVNULL)
    for _ in range(100):
        try:
            publish(f"rtmp://127.0.0.1:{port}", data)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    return ended(process, out)


def ended(process: subprocess.Popen, out=None) -> float:
    """CPU seconds of a child that ends by itself (read before it is reaped)."""
    import os
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"{process.args}: exit {process.returncode}")
    if out is not None:
        out.unlink()
    return usage.ru_utime + usage.ru_stime


def ffmpeg_from_file(data: Input, folder) -> float:
    out = folder / "out.mp4"
    return ended(subprocess.Popen([tools.FFMPEG, "-v", "error", "-i", str(data.file), *FRAGMENTED, str(out)],
                                   stdin=subprocess.DEVNULL), out)


def copy(data: Input, folder) -> float:
    out = folder / "out.flv"
    return ended(subprocess.Popen(["dd", f"if={data.file}", f"of={out}", "bs=64K", "status=none"]), out)


def run(rounds: int) -> str:
    rows: dict[str, list[float]] = {}
    with peers.folder("/dev/shm") as folder:
        data = Input(folder)
        ways = {
            "**weir**, RTMP → fragments for HLS and DASH": lambda: weir(data),
            "ffmpeg 5.1 `-c copy`, RTMP → fragmented MP4": lambda: ffmpeg_from_rtmp(data, folder),
            "ffmpeg 5.1 `-c copy`, FLV file → fragmented MP4": lambda: ffmpeg_from_file(data, folder),
            "`dd bs=64K`, file → file": lambda: copy(data, folder),
        }
        for turn in range(rounds + 1):
            for name, way in ways.items():
                took = way()
                if turn:  # the first round warms up
                    rows.setdefault(name, []).append(took)
            print(f"mux round {turn}/{rounds}: " + "; ".join(f"{n} {v[-1]:.2f} s" for n, v in rows.items()), flush=True)
    own = meter.median(rows["**weir**, RTMP → fragments for HLS and DASH"])
    gigabytes = data.bytes / 1e9
    text = (f"Mux: {SECONDS // 60} min of 5 Mbit/s H.264 with B-frames and AAC ({data.bytes / 1e6:.0f} MB, {data.samples} "
            f"samples), all in memory; whole-process CPU, median (min–max) of {rounds} rounds.\n\n")
    return text + meter.table(
        ["way", "CPU s/GB", "ns/sample", "weir ÷ this"],
        [[name, meter.spread([v / gigabytes for v in found]), f"{meter.median(found) / data.samples * 1e9:.0f}",
          f"{own / meter.median(found):.2f}"] for name, found in rows.items()])
