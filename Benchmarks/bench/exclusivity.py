"""What Swift's dynamic exclusivity checks cost: the shipped build, which has none, and the same with them, in turn. `WEIR_CHECKED` names
the other binary; `make exclusivity` builds it."""

import contextlib
import os
import resource
import time

from harness import tools

from . import delivery, ingest, lowlatency, meter, peers

#: Above this share of the processor time they stay off.
GOAL = 1.02
CROWDS = (("600 players, playlists and parts", 600, "parts"), ("1,000 players wait for playlists", 1000, "waits"))
PUBLISHERS, SETTLE, SECONDS = 50, 9, 16
FLAGS = ("--max-viewers", "100000", "--poll-limit", "0", "--trusted-proxy", "127.0.0.1", "--window", "20s")


@contextlib.contextmanager
def binary(path: str):
    """Servers that start meanwhile are of this binary."""
    before = os.environ.get("WEIR_BIN")
    os.environ["WEIR_BIN"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["WEIR_BIN"]
        else:
            os.environ["WEIR_BIN"] = before


def measure(load: "ingest.Load", crowd: "lowlatency.Crowd") -> dict[str, float]:
    """The cost of each row, in its own unit."""
    found = {}
    with peers.weir(*FLAGS) as server:
        pid = server.process.pid
        publisher = lowlatency.Publisher(server.rtmp, "bench", 90)
        url = lowlatency.playlist(server, "bench")
        time.sleep(22)  # the window is full
        found["a playlist over 64 connections, µs of CPU a request"] = delivery.wrk(url, 64, pid)["cpu"]
        for name, count, mode in CROWDS:
            found[f"{name}, % of a core"] = crowd.run(url, count, mode, pid)["cpu"]
        publisher.stop()
    with peers.weir("--window", "6s") as server:
        one = ingest.measure(load, server.rtmp, server.process.pid, PUBLISHERS, SETTLE, SECONDS)
        found[f"{PUBLISHERS} publishers, % of a core each"] = one["cpu"]
    return found


def run(rounds: int) -> str:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    builds = {"off": tools.weir_binary(), "on": os.path.abspath(os.environ["WEIR_CHECKED"])}
    rows: dict[str, dict[str, list[float]]] = {}
    with peers.folder() as folder:
        load = ingest.Load(folder, SETTLE + SECONDS + 2)
        crowd = lowlatency.Crowd(folder)
        for turn in range(rounds):
            for name, path in builds.items() if turn % 2 else reversed(builds.items()):
                with binary(path):
                    for row, value in measure(load, crowd).items():
                        rows.setdefault(row, {}).setdefault(name, []).append(value)
            print(f"exclusivity round {turn + 1}/{rounds}: " + "; ".join(
                f"{row} {both['off'][-1]:.3g}, checked {both['on'][-1]:.3g}" for row, both in rows.items()), flush=True)
    body = []
    for row, both in rows.items():
        pairs = [checked / plain for plain, checked in zip(both["off"], both["on"])]
        body.append([row, meter.spread(both["off"]), meter.spread(both["on"]), meter.spread(pairs)])
    return (f"Exclusivity checks (goal: on where they cost less than {100 * (GOAL - 1):.0f} %): the shipped build and the same with them, in "
            f"turn, median (min–max) of {rounds} rounds and of the pairs of a round.\n\n"
            + meter.table(["what", "off", "on", "on ÷ off"], body))
