"""The cost of DASH manifests, their histories and patches, beside that of the streams."""

import http.client
import re
import threading
import time
import urllib.parse

from . import ingest, meter, peers

#: Requests for each manifest: one per part.
PERIOD = 0.2
HOLDS = ["no requests", "manifests", "manifests and patches"]


class Asker(threading.Thread):
    """Requests every stream's manifest in each period, and the patch to it from the previous one."""

    def __init__(self, web: str, count: int, patches: bool):
        super().__init__(daemon=True)
        parts = urllib.parse.urlsplit(web)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
        self.count = count
        self.patches = patches
        self.made = {"manifests": 0, "patches": 0, "bytes": 0}
        self.running = True
        self.start()

    def get(self, path: str) -> tuple[int, str]:
        self.connection.request("GET", path)
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode("utf-8", "replace")

    def run(self) -> None:
        locations: dict[int, str] = {}
        while self.running:
            began = time.monotonic()
            for number in range(self.count):
                if number in locations:
                    status, text = self.get(f"/live/bench{number}/{locations[number]}")
                    if status != 200:
                        raise RuntimeError(f"{locations[number]}: {status} {text}")
                    self.made["patches"] += 1
                status, text = self.get(f"/live/bench{number}/manifest.mpd")
                if status != 200:
                    raise RuntimeError(f"manifest.mpd: {status} {text}")
                self.made["manifests"] += 1
                self.made["bytes"] += len(text)
                if self.patches:
                    locations[number] = re.search(r"<PatchLocation[^>]*>([^<]+)<", text).group(1)
            time.sleep(max(0, PERIOD - (time.monotonic() - began)))

    def stop(self) -> dict[str, int]:
        self.running = False
        self.join(5)
        return self.made


def run(rounds: int, count: int = 10, settle: float = 22, seconds: float = 12) -> str:
    rows: dict[str, list[dict]] = {hold: [] for hold in HOLDS}
    with peers.folder() as folder:
        load = ingest.Load(folder, int(settle + (seconds + 1) * len(HOLDS)) + 4)
        for turn in range(rounds):
            with peers.weir("--window", f"{ingest.WINDOW}s") as server:
                pid = server.process.pid
                with load.publishing(server.rtmp, count, settle + (seconds + 1) * len(HOLDS) + 2):
                    time.sleep(settle)
                    for hold in HOLDS:
                        asker = None if hold == "no requests" else Asker(server.web, count, "patches" in hold)
                        time.sleep(1)
                        began, before = time.monotonic(), meter.cpu_seconds(pid)
                        time.sleep(seconds)
                        cpu, took = meter.cpu_seconds(pid) - before, time.monotonic() - began
                        memory = meter.memory_bytes(pid)["resident"]
                        made = asker.stop() if asker else {}
                        rows[hold].append({"cpu": 100 * cpu / took / count, "memory": memory / count, **made})
            print(f"manifests round {turn + 1}/{rounds}: " + "; ".join(
                f"{hold} {found[-1]['cpu']:.3f} % {found[-1]['memory'] / 1e3:.0f} kB" for hold, found in rows.items()), flush=True)
    idle = [found["memory"] for found in rows["no requests"]]
    body = [[hold, meter.spread([f["cpu"] for f in found]),
             meter.spread([(f["memory"] - i) / 1e3 for f, i in zip(found, idle)])] for hold, found in rows.items()]
    size = meter.median(f["bytes"] / f["manifests"] for f in rows["manifests"])
    return (f"DASH manifests: {count} streams of 3 Mbit/s, each manifest ({size:,.0f} B) asked for five times a second, with "
            f"every part, and in the last row also the patch from the one before; median (min–max) of {rounds} rounds.\n\n"
            + meter.table(["what", "server CPU, %/stream", "memory beyond the streams' own, kB/stream"], body))
