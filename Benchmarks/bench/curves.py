"""Cost curves: CPU and memory against the number of publishers, and of viewers that wait for playlists, over HTTP/1.1 and over
HTTP/2 with TLS. Each number has a fresh server, because memory left by earlier ones would be used again."""

import resource
import time

from . import delivery, ingest, lowlatency, meter, peers

PUBLISHERS = (1, 10, 50, 200, 500)
VIEWERS = (100, 1000, 3000, 10_000)
#: The smallest window, so that 500 streams fit into the memory of a small machine.
WINDOW = "6s"
#: Seconds until the window is full, and seconds that are measured.
SETTLE, SECONDS = 9, 10
#: Of one address many viewers come at once, which is a proxy's right alone.
FLAGS = ("--max-viewers", "100000", "--trusted-proxy", "127.0.0.1", "--window", "20s")


def publishers() -> list[list[str]]:
    body = []
    with peers.folder() as folder:
        load = ingest.Load(folder, SETTLE + SECONDS + 2)
        for count in PUBLISHERS:
            with peers.weir("--window", WINDOW, "--max-streams", "2000", "--max-names", "1000") as server:
                found = ingest.measure(load, server.rtmp, server.process.pid, count, SETTLE, SECONDS)
            body.append([f"{count:,}", f"{found['cpu'] * count:.1f}", f"{found['cpu']:.3f}", f"{found['memory'] * count / 2**20:.0f}",
                         f"{found['memory'] / 2**20:.2f}", f"{found['lag']:.0f}"])
            print(f"publishers: {' | '.join(body[-1])}", flush=True)
    return body


def viewers() -> list[list[str]]:
    body = []
    with peers.folder() as folder:
        crowd = lowlatency.Crowd(folder)
        certificate = delivery.certificate(folder)
        for count in VIEWERS:
            for way, resets in lowlatency.WAYS[:2]:
                with peers.weir(*FLAGS, *certificate, listeners=("http", "https", "rtmp")) as server:
                    publisher = lowlatency.Publisher(server.rtmp, "bench", 100)
                    url = lowlatency.playlist(server, "bench")
                    time.sleep(22)  # the window is full
                    pid = server.process.pid
                    before = meter.memory_bytes(pid)["total"]
                    peak: list[int] = []
                    found = crowd.run(url if resets is None else url.replace(server.web, server.addresses["https"]), count, "waits",
                                      pid, resets, during=lambda: peak.append(meter.memory_bytes(pid)["total"]))
                    publisher.stop()
                memory = (peak[0] - before) / count
                body.append([f"{count:,}{way or ', HTTP/1.1'}", f"{found['cpu']:.1f}", f"{10_000 * found['cpu'] / count / 5:.1f}",
                             f"{memory / 1024:.1f}"])
                print(f"viewers: {' | '.join(body[-1])}", flush=True)
    return body


def run() -> str:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    return (f"Cost curves: publishers of 3 Mbit/s, `--window {WINDOW}`; the program that sends shares the cores.\n\n"
            + meter.table(["publishers", "CPU, % of a core", "of each", "memory over idle, MiB", "of each", "worst lag of the sender, ms"],
                          publishers())
            + "\nViewers that wait for each part's playlist of one stream, five parts a second, on the same cores.\n\n"
            + meter.table(["viewers", "CPU, % of a core", "µs a viewer and part", "memory of each, KiB"], viewers()))
