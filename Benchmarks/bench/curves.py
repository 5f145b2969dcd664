"""Cost curves: CPU and memory against the number of publishers, of viewers that wait for playlists, the window and the bit rate, and
the bound of docs/limits.md that each meets first. Each number has a fresh server, because memory left by earlier ones would be used
again."""

import os
import resource
import time

from . import delivery, ingest, lowlatency, meter, peers

PUBLISHERS = (1, 10, 50, 200, 500)
VIEWERS = (100, 1000, 3000, 10_000)
#: Seconds of media in memory, and bits a second, with so many publishers.
WINDOWS, RATES, COUNT = (6, 20, 60, 120), ("1M", "3M", "6M", "12M"), 10
#: The smallest window, so that 500 streams fit into the memory of a small machine.
WINDOW = WINDOWS[0]
#: Seconds from a full window on until it is measured, and seconds that are measured.
SETTLE, SECONDS = 3, 10
#: Seconds after the largest crowd has left, at which memory is read again.
AFTER = 60
#: Parts a second: what a viewer asks for that misses none.
PARTS = 5
#: No bound but the machine's. Of one address many viewers come at once, which is a proxy's right alone.
FLAGS = ("--max-streams", "2000", "--max-names", "1000", "--max-viewers", "100000", "--trusted-proxy", "127.0.0.1")
#: For which the bounds are calculated. Those here are measured, the others are not.
CORES = (2, 16)


def capacity() -> dict:
    """What a server with the usual settings takes on this machine."""
    with peers.weir() as server:
        found = server.json("/api/v1/streams")["capacity"]
    with open("/proc/meminfo") as info:
        found["memory"] = 1024 * next(int(line.split()[1]) for line in info if line.startswith("MemTotal"))
    return found


def first_bound(room: dict, kind: str, cpu: float, memory: float, media: float, cores: int) -> str:
    """The bound that more of the same meets first: its name in docs/limits.md, and how many there are then. `cpu` is % of a core of
    each, `memory` and `media` are bytes of each, all of it and what is in its window."""
    setting = {"streams": "--max-streams, descriptors", "connections": "--max-viewers, descriptors"}[kind]
    bounds = {f"processors ({cores})": cores * 100 / cpu if cpu > 0 else float("inf"), setting: float(room[kind]),
              "memory of the machine": room["memory"] / memory if memory > 0 else float("inf")}
    if media > 0:
        bounds["--media-memory"] = room["mediaMemoryBytes"] / media
    name = min(bounds, key=bounds.__getitem__)
    return f"{bounds[name]:,.0f}: {name}"


def publishing(load: "ingest.Load", room: dict, count: int, window: int) -> list[str]:
    """One row, without its first cell."""
    with peers.weir("--window", f"{window}s", *FLAGS) as server:
        found = ingest.measure(load, server.rtmp, server.process.pid, count, window + SETTLE, SECONDS)
    each = found["memory"], found["memfd"]
    return [f"{found['cpu'] * count:.1f}", f"{found['cpu']:.3f}", f"{each[0] * count / 2**20:.0f}", f"{each[0] / 2**20:.2f}",
            f"{found['lag']:.0f}", *(first_bound(room, "streams", found["cpu"], *each, cores) for cores in CORES)]


def watching(crowd: "lowlatency.Crowd", certificate: list[str], room: dict, count: int, resets: int | None) -> list[str]:
    with peers.weir("--window", "20s", *FLAGS, *certificate, listeners=("http", "https", "rtmp")) as server:
        publisher = lowlatency.Publisher(server.rtmp, "bench", 100 + AFTER)
        url = lowlatency.playlist(server, "bench")
        time.sleep(22)  # the window is full
        pid = server.process.pid
        before = meter.memory_bytes(pid)["total"]
        peak: list[int] = []
        found = crowd.run(url if resets is None else url.replace(server.web, server.addresses["https"]), count, "waits", pid, resets,
                          during=lambda: peak.append(meter.memory_bytes(pid)["total"]))
        left = ""
        if count == VIEWERS[-1]:
            time.sleep(AFTER)
            left = f"{(meter.memory_bytes(pid)['total'] - before) / 2**20:.1f}"
        publisher.stop()
    memory = (peak[0] - before) / count
    rate = found["requests"] / (lowlatency.SECONDS + 3)
    # Of a viewer that misses no part. Where they are too many, each asks less often, and would seem to cost less.
    each = found["cpu"] / rate * PARTS
    return [f"{found['cpu']:.1f}", f"{rate:,.0f}", f"{10_000 * found['cpu'] / rate:.1f}",
            f"{lowlatency.percentile(found['behind_ms'], 0.99):.0f}" if found["behind_ms"] else "more than a part", f"{memory / 1024:.1f}", left,
            *(first_bound(room, "connections", each, memory, 0, cores) for cores in CORES)]


def run(publishers=PUBLISHERS, viewers=VIEWERS, windows=WINDOWS, rates=RATES) -> str:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    room = capacity()
    rows: dict[str, list[list[str]]] = {"publishers": [], "window": [], "bit rate": [], "viewers": []}

    def add(kind: str, what: str, row: list[str]) -> None:
        rows[kind].append([what, *row])
        print(f"{kind}: {' | '.join(rows[kind][-1])}", flush=True)

    with peers.folder() as folder:
        load = ingest.Load(folder, max(windows, default=WINDOW) + SETTLE + SECONDS + 2)
        for count in publishers:
            add("publishers", f"{count:,}", publishing(load, room, count, WINDOW))
        for window in windows:
            add("window", f"{window} s", publishing(load, room, COUNT, window))
        for rate in rates:
            add("bit rate", f"{rate[:-1]} Mbit/s",
                publishing(ingest.Load(folder, WINDOW + SETTLE + SECONDS + 2, rate), room, COUNT, WINDOW))
        crowd = lowlatency.Crowd(folder)
        certificate = delivery.certificate(folder)
        for count in viewers:
            for way, resets in lowlatency.WAYS:
                add("viewers", f"{count:,}{way or ', HTTP/1.1'}", watching(crowd, certificate, room, count, resets))
    bound = [f"met first with {cores} cores" + ("" if cores == os.cpu_count() else ", calculated") for cores in CORES]
    heads = ["CPU, % of a core", "of each", "memory over idle, MiB", "of each", "worst lag of the sender, ms", *bound]
    return (
        f"Cost curves: publishers of 3 Mbit/s and `--window {WINDOW}s` where nothing else is said; the programs that send and watch share "
        f"the cores. The last columns are calculated of each row: how many of the same meet a bound of docs/limits.md first, with the usual "
        f"settings, {room['descriptors']:,} descriptors and {room['memory'] / 2**30:.0f} GiB of memory. With more cores only the processors "
        f"are more.\n\n"
        + meter.table(["publishers", *heads], rows["publishers"])
        + f"\nThe window, with {COUNT} publishers.\n\n" + meter.table(["window", *heads], rows["window"])
        + f"\nThe bit rate, with {COUNT} publishers.\n\n" + meter.table(["bit rate", *heads], rows["bit rate"])
        + f"\nViewers that wait for each part's playlist of one stream, {PARTS} parts a second; loopback is a trusted proxy. The bounds are "
          f"those of viewers that miss no part.\n\n"
        + meter.table(["viewers", "CPU, % of a core", "requests/s", "µs a request", "last player behind first, 99 %, ms", "memory of each, KiB",
                       f"left of all after {AFTER} s, MiB", *bound], rows["viewers"]))
