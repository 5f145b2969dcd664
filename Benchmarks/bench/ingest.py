"""Publishers of 3 Mbit/s 720p30: CPU and memory of weir (HLS and DASH from memory), of nginx-rtmp, and of the least that a
server can do (`floor.c`)."""

import contextlib
import json
import struct
import subprocess
import time

from harness import http as plain
from harness.programs import free_port
from harness.rawrtmp import RawRTMP
from harness.weir import Weir

from . import film, meter, peers, start

WINDOW = 16  # seconds kept by every server
OUTPUTS = {
    "nginx-rtmp, relay only": "",
    "nginx-rtmp, HLS": "hls on; hls_path {folder}/hls; hls_fragment 2s; hls_playlist_length 16s;",
    "nginx-rtmp, DASH": "dash on; dash_path {folder}/dash; dash_fragment 2s; dash_playlist_length 16s;",
}


class Load:
    """The replay program, compiled now, and the messages it sends."""

    def __init__(self, folder, seconds: int, rate: str = "3M"):
        self.program = folder / "replay"
        subprocess.run(["cc", "-O2", "-o", str(self.program), str(peers.HERE / "bench" / "replay.c")], check=True)
        headers, media = film.media(rate, seconds + 3)
        self.file = folder / f"messages-{rate}"
        with open(self.file, "wb") as out:
            for tag in [*headers, *media]:
                data = film.message(tag)
                out.write(struct.pack("<II", 0 if tag in headers else tag.milliseconds, len(data)) + data)
        self.media_rate = sum(len(tag.body) - 5 for tag in media) / (media[-1].milliseconds / 1000)

    @contextlib.contextmanager
    def publishing(self, rtmp: str, count: int, seconds: float):
        """Publishes `count` streams for `seconds`; the body runs meanwhile."""
        clients = []
        try:
            for number in range(count):
                client = RawRTMP(rtmp)
                client.handshake()
                client.connect()
                client.set_chunk_size(film.CHUNK_SIZE)
                client.publish(f"bench{number}")
                client.socket.settimeout(None)
                clients.append(client)
            handles = [client.socket.fileno() for client in clients]
            process = subprocess.Popen([str(self.program), str(self.file), str(seconds), *map(str, handles)],
                                       pass_fds=handles, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            report: dict = {}
            try:
                yield report
            finally:
                out, err = process.communicate(timeout=seconds + 20)
                if process.returncode != 0:
                    raise RuntimeError(f"replay: {err.decode()}")
                report.update(json.loads(out))
        finally:
            for client in clients:
                client.close()


@contextlib.contextmanager
def floor(folder):
    """The program of `floor.c`; yields its process and address."""
    program = folder / "floor"
    subprocess.run(["cc", "-O2", "-o", str(program), str(peers.HERE / "bench" / "floor.c")], check=True)
    port = free_port()
    process = subprocess.Popen([str(program), str(port)], stdout=subprocess.PIPE)
    try:
        process.stdout.readline()
        yield process.pid, f"rtmp://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(5)


def processor_seconds(pid: int) -> float:
    """Of the tree: a tick of /proc/PID/stat is as much as a single stream takes in a second."""
    return sum(start.processor_seconds(one) for one in meter.tree(pid))


def measure(load: Load, rtmp: str, pid: int, count: int, settle: float, seconds: float) -> dict:
    """CPU % of one core per publisher over `seconds`, after `settle`; memory at the end over idle."""
    idle = meter.memory_bytes(pid)
    with load.publishing(rtmp, count, settle + seconds + 1) as report:
        time.sleep(settle)
        began, before = time.monotonic(), processor_seconds(pid)
        time.sleep(seconds)
        after, took = processor_seconds(pid), time.monotonic() - began
        memory = meter.memory_bytes(pid)
    return {
        "cpu": 100 * (after - before) / took / count,
        "memory": (memory["total"] - idle["total"]) / count, "memfd": (memory["memfd"] - idle["memfd"]) / count,
        "lag": report["worst_lag_ms"],
    }


def run(rounds: int, count: int = 50, settle: float = 24, seconds: float = 16) -> str:
    rows: dict[str, list[dict]] = {}
    with peers.folder() as folder:
        load = Load(folder, int(settle + seconds) + 2)
        for turn in range(rounds):
            with peers.weir("--window", f"{WINDOW}s") as server:
                rows.setdefault("**weir**, HLS and DASH", []).append(
                    measure(load, server.rtmp, server.process.pid, count, settle, seconds))
            for name, output in OUTPUTS.items():
                with peers.nginx("rtmp.conf", output=output) as (pid, port, _):
                    rows.setdefault(name, []).append(
                        measure(load, f"rtmp://127.0.0.1:{port}", pid, count, settle, seconds))
            with floor(folder) as (pid, address):
                rows.setdefault("floor: received bytes to memory files", []).append(
                    measure(load, address, pid, count, settle, seconds))
            print(f"ingest round {turn + 1}/{rounds}: " + "; ".join(
                f"{name} {values[-1]['cpu']:.3f} % {values[-1]['memory'] / 1e6:.2f} MB lag {values[-1]['lag']:.0f} ms"
                for name, values in rows.items()), flush=True)
    own = meter.median(r["cpu"] for r in rows["**weir**, HLS and DASH"])
    window = load.media_rate * WINDOW
    text = (f"Ingest: {count} publishers of {load.media_rate * 8 / 1e6:.2f} Mbit/s, 720p30 and AAC; CPU in % of one core "
            f"per publisher, median (min–max) of {rounds} rounds; memory over idle, with all memfd pages.\n\n")
    body = []
    for name, found in rows.items():
        cpu = [r["cpu"] for r in found]
        memory = meter.median(r["memory"] for r in found)
        body.append([name, meter.spread(cpu), f"{own / meter.median(cpu):.2f}", f"{memory / 1e6:.2f}",
                     f"{memory / window:.2f}" if name.startswith("**") else "–"])
    return text + meter.table(
        ["server", "CPU %/publisher", "weir ÷ this", "MB/publisher", f"÷ {WINDOW} s of media ({window / 1e6:.2f} MB)"], body)


def scale(rounds: int, counts: tuple[int, ...] = (1, 10, 50), settle: float = 20, seconds: float = 12) -> str:
    """Whether cost grows linearly: the same stream once, ten and fifty times."""
    rows: dict[int, list[dict]] = {}
    with peers.folder() as folder:
        load = Load(folder, int(settle + seconds) + 2)
        for turn in range(rounds):
            for count in counts:
                with peers.weir("--window", f"{WINDOW}s") as server:
                    rows.setdefault(count, []).append(
                        measure(load, server.rtmp, server.process.pid, count, settle, seconds))
            print(f"streams round {turn + 1}/{rounds}: " + "; ".join(
                f"{count}: {values[-1]['cpu']:.3f} % each" for count, values in rows.items()), flush=True)
    body = [[str(count), meter.spread([r["cpu"] for r in found]),
             f"{meter.median(r['memory'] for r in found) / 1e6:.2f}"] for count, found in rows.items()]
    return ("Streams: CPU in % of one core and memory for each of them, no viewers.\n\n"
            + meter.table(["streams", "CPU %/stream", "MB/stream"], body))


def longest_pause(url: str, seconds: float) -> float:
    """Longest time in milliseconds between two fragments of a `stream.mp4`, within this many seconds."""
    stream = plain.Stream(url)
    arrivals, last, end = [], b"", time.monotonic() + seconds
    try:
        while time.monotonic() < end and (piece := stream.answer.read1(1 << 16)):
            if b"moof" in last + piece:
                arrivals.append(time.monotonic())
            last = piece[-3:]
    finally:
        stream.close()
    return max(later - earlier for earlier, later in zip(arrivals[1:], arrivals[2:])) * 1000


def recorded(rounds: int, count: int = 50, settle: float = 8, seconds: float = 15) -> str:
    """The cost of `count` publishers when all of them are recorded, and the effect on a viewer."""
    rows: dict[str, list[tuple[float, float, float]]] = {}
    with peers.folder() as folder:
        load = Load(folder, int(settle + seconds) + 2)
        for _ in range(rounds):
            for name, flags in (("not recorded", ["--no-record"]), ("recorded", ["--keep-free", "0MB"])):
                with peers.folder("/var/tmp") as home:
                    server = Weir(*flags, "--window", f"{WINDOW}s", "--log-level", "error", folder=home)
                    try:
                        with load.publishing(server.rtmp, count, settle + seconds + 1):
                            time.sleep(settle)
                            before = meter.cpu_seconds(server.process.pid)
                            pause = longest_pause(f"{server.web}/live/bench0/stream.mp4", seconds)
                            cpu = meter.cpu_seconds(server.process.pid) - before
                            gaps = sum(len(stream["recording"].get("gaps", [])) for stream in server.json("/api/v1/streams")["streams"]
                                       if stream.get("recording"))
                        rows.setdefault(name, []).append((100 * cpu / seconds / count, pause, gaps))
                    finally:
                        server.kill()
    body = [[name, *(meter.spread([row[column] for row in found]) for column in range(3))] for name, found in rows.items()]
    return (f"Recording {count} streams of {load.media_rate * 8 / 1e6:.2f} Mbit/s at once, to a disk; median (min–max) of {rounds} "
            "rounds. Parts come every 200 ms.\n\n"
            + meter.table(["streams", "CPU %/stream", "a viewer's longest pause, ms", "gaps in all recordings"], body))
