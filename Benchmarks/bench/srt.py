"""SRT: CPU and memory of weir with its confined worker, beside srt-live-transmit, which only receives, and weir's own RTMP."""

import contextlib
import subprocess
import time

from harness import sources
from harness.programs import free_port

from . import film, ingest, meter, peers

COUNTS = (1, 10, 50)
LATENCY = 120  # milliseconds
#: What weir may add to receiving, as a part of what the same stream costs by RTMP.
SHARE = 1.5


@contextlib.contextmanager
def senders(folder, urls: list[str]):
    """A caller for each address that sends the film again and again."""
    recipe = film.FILMS["3M"]
    sources.RECIPES[recipe.name] = recipe
    path = folder / "film.ts"
    if not path.exists():
        subprocess.run(["ffmpeg", "-v", "error", "-i", str(sources.flv(recipe.name)), "-c", "copy", "-f", "mpegts", str(path)],
                       check=True)
    running = [
        subprocess.Popen(
            ["ffmpeg", "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(path), "-c", "copy", "-f", "mpegts", url],
            stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for url in urls]
    try:
        yield running
    finally:
        for process in running:
            process.kill()
            process.wait()


def _measure(pids: list[int], running, count: int, settle: float, seconds: float, idle: int) -> dict:
    time.sleep(settle)
    began, before = time.monotonic(), sum(map(meter.cpu_seconds, pids))
    time.sleep(seconds)
    cpu, took = sum(map(meter.cpu_seconds, pids)) - before, time.monotonic() - began
    lost = [process for process in running if process.poll() is not None]
    if lost:
        raise RuntimeError(f"{len(lost)} of {count} senders ended")
    memory = sum(meter.memory_bytes(pid)["total"] for pid in pids) - idle
    return {"cpu": 100 * cpu / took / count, "memory": memory / count}


def _weir(folder, count: int, settle: float, seconds: float) -> dict:
    flags = ("--window", f"{ingest.WINDOW}s", "--srt", "127.0.0.1:0", "--max-names", "1000")
    with peers.weir(*flags, listeners=("http", "srt")) as server:
        idle = meter.memory_bytes(server.process.pid)["total"]
        urls = [f"{server.srt}?streamid=bench{number}&latency={LATENCY * 1000}" for number in range(count)]
        with senders(folder, urls) as running:
            return _measure([server.process.pid], running, count, settle, seconds, idle)


def _receivers(folder, count: int, settle: float, seconds: float) -> dict:
    """srt-live-transmit takes one caller: one for each."""
    ports = [free_port() for _ in range(count)]
    with contextlib.ExitStack() as stack:
        found = []
        for port in ports:
            process = subprocess.Popen(
                ["srt-live-transmit", "-q", f"srt://127.0.0.1:{port}?mode=listener&latency={LATENCY}", "file://con"],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            found.append(process.pid)
        time.sleep(1)
        urls = [f"srt://127.0.0.1:{port}?latency={LATENCY * 1000}" for port in ports]
        with senders(folder, urls) as running:
            return _measure(found, running, count, settle, seconds, 0)


def run(rounds: int, settle: float = 20, seconds: float = 12) -> str:
    rows: dict[tuple[int, str], list[dict]] = {}
    with peers.folder() as folder:
        load = ingest.Load(folder, int(settle + seconds) + 2)
        for turn in range(rounds):
            for count in COUNTS:
                own = rows.setdefault((count, "SRT"), [])
                own.append(_weir(folder, count, settle, seconds))
                rows.setdefault((count, "receiver"), []).append(_receivers(folder, count, settle, seconds))
                with peers.weir("--window", f"{ingest.WINDOW}s") as server:
                    rows.setdefault((count, "RTMP"), []).append(
                        ingest.measure(load, server.rtmp, server.process.pid, count, settle, seconds))
            print(f"srt round {turn + 1}/{rounds}: " + "; ".join(
                f"{count} {who}: {values[-1]['cpu']:.3f} %" for (count, who), values in rows.items()), flush=True)
    body = []
    for count in COUNTS:
        own, receiver, rtmp = (rows[count, who] for who in ("SRT", "receiver", "RTMP"))
        bound = [a["cpu"] / (b["cpu"] + SHARE * c["cpu"]) for a, b, c in zip(own, receiver, rtmp)]
        body.append([
            str(count), *(meter.spread([r["cpu"] for r in found]) for found in (own, receiver, rtmp)), meter.spread(bound),
            *(f"{meter.median(r['memory'] for r in found) / 1e6:.2f}" for found in (own, rtmp))])
    return (f"SRT: {load.media_rate * 8 / 1e6:.2f} Mbit/s each, latency {LATENCY} ms, without encryption; CPU in % of one core per "
            f"stream with the worker, median (min–max) of {rounds} rounds. The bound is srt-live-transmit's + {SHARE} × RTMP's.\n\n"
            + meter.table(["streams", "weir, SRT", "srt-live-transmit", "weir, RTMP", "SRT ÷ bound", "MB/stream, SRT", "MB/stream, RTMP"],
                          body))
