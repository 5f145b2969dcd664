"""Low latency: many viewers that wait for parts, over HTTP/1.1 and over HTTP/2 with TLS, idle viewers and what stays when they have
left, the delay of a part from RTMP to a waiting client, and the start of `stream.mp4`."""

import http.client
import json
import re
import resource
import subprocess
import threading
import time
import urllib.parse

from harness import hls, http as plain
from harness.flv import VIDEO
from harness.rawrtmp import RawRTMP

from . import delivery, film, meter, peers

SECONDS = 10
#: Viewers that send one request and keep their connection.
IDLE = 10_000


#: What they are called, how many, and what they ask for.
CROWDS = (
    ("600 players, playlists and parts", 600, "parts"), ("100 players wait for playlists", 100, "waits"),
    ("1,000 players wait for playlists", 1000, "waits"), ("5,000 players wait for playlists", 5000, "waits"),
)
#: How each of them asks, and how many of 100 reset each request that waits, and ask again.
WAYS = (("", None), (", HTTP/2 with TLS", 0), (", HTTP/2 with TLS, 1 % reset", 1))


class Crowd:
    """The C programs, compiled now."""

    def __init__(self, folder):
        self.folder = folder
        for name, libraries in (("players", []), ("players2", ["-lssl", "-lcrypto"])):
            subprocess.run(["cc", "-O2", "-o", str(folder / name), str(peers.HERE / "bench" / f"{name}.c"), *libraries], check=True)

    def start(self, url: str, count: int, mode: str, seconds: float, resets: int | None = None) -> subprocess.Popen:
        """With `resets` over HTTP/2, at an address of https."""
        parts = urllib.parse.urlsplit(url)
        program, more = ("players", []) if resets is None else ("players2", [str(resets)])
        return subprocess.Popen(
            [str(self.folder / program), parts.hostname, str(parts.port), parts.path, str(count), str(seconds), mode, *more],
            stdout=subprocess.PIPE, text=True)

    def run(self, url: str, count: int, mode: str, pid: int, resets: int | None = None, during=None) -> dict:
        """CPU of the server in % of a core while `count` players run, and their results. `during` is called while they run."""
        process = self.start(url, count, mode, SECONDS + 3, resets)
        if resets is not None:
            process.stdout.readline()  # all have shaken hands
        time.sleep(2)  # all are connected and in step
        began, before = time.monotonic(), meter.cpu_seconds(pid)
        time.sleep(SECONDS)
        cpu, took = meter.cpu_seconds(pid) - before, time.monotonic() - began
        if during:
            during()
        report = json.loads(process.communicate(timeout=60)[0])
        if report["failures"]:
            raise RuntimeError(f"{count} players, {mode}: {report}")
        return {"cpu": 100 * cpu / took, **report}


class Publisher(threading.Thread):
    """A stream, as long as it is needed; `stop` ends it."""

    def __init__(self, rtmp: str, name: str, seconds: int, rate: str = "3M"):
        super().__init__(daemon=True)
        headers, media = film.media(rate, seconds)
        self.headers, self.media = headers, media
        self.client = RawRTMP(rtmp).start(name, chunk_size=film.CHUNK_SIZE)
        #: When the last byte of each frame was sent, in order.
        self.sent: list[float] = []
        self.running = True
        self.start()

    def run(self) -> None:
        for tag in self.headers:
            self.client.tag(tag)
        began = time.monotonic()
        for tag in self.media:
            wait = began + tag.milliseconds / 1000 - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            if not self.running:
                break
            try:
                self.client.tag(tag)
            except OSError:
                return
            if tag.type == VIDEO:
                self.sent.append(time.monotonic())

    def stop(self) -> None:
        self.running = False
        self.join(2)
        self.client.close()


def playlist(server, name: str) -> str:
    index = f"{server.web}/live/{name}/index.m3u8"
    server.wait(lambda: plain.fetch(index).status == 200, 30, f"a playlist of {name}", every=0.2)
    top = hls.parse_multivariant(plain.fetch(index).text, index)
    return top.absolute(top.variants[0].uri)


def hinted_parts(url: str, seconds: float):
    """One waiting client: (segment, part, monotonic arrival, playlist with that part) for each hinted part."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
    folder = parts.path.rsplit("/", 1)[0]

    def get(path: str) -> str:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path}: {answer.status}")
        return body.decode("utf-8", "replace")

    text = get(parts.path)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            segment, part = map(int, re.search(r'PRELOAD-HINT:TYPE=PART,URI="(\d+)\.(\d+)\.m4s"', text).groups())
            get(f"{folder}/{segment}.{part}.m4s")
            arrived = time.monotonic()
            text = get(f"{parts.path}?_HLS_msn={segment}&_HLS_part={part}")
            yield segment, part, arrived, text
    finally:
        connection.close()


def latencies(url: str, publisher: Publisher, seconds: float) -> list[float]:
    """Milliseconds from the last byte of a part's newest frame to the whole hinted part, at one waiting client."""
    # All of them first: a part may arrive before the publisher's thread has recorded its last send.
    arrivals = [(segment, part, arrived) for segment, part, arrived, _ in hinted_parts(url, seconds)]
    # Sixty frames per segment, six per part.
    return [(arrived - publisher.sent[(segment - 1) * 60 + part * 6 + 5]) * 1000 for segment, part, arrived in arrivals]


def beginnings(server, count: int) -> list[tuple[float, float]]:
    """For `count` streams the milliseconds from the last byte of their first key frame to the first byte of a waiting response
    for `stream.mp4`, and to the end of the head of its first fragment."""
    headers, media = film.media("3M", 3)
    found = []
    for number in range(count):
        client = RawRTMP(server.rtmp).start(f"begin{number}", chunk_size=film.CHUNK_SIZE)
        path = f"/live/begin{number}/stream.mp4"
        server.wait(lambda: plain.fetch(f"{server.web}/api/v1/streams/begin{number}").status == 200, 5, "the stream", every=0.01)
        stream = plain.Stream(server.web + path)
        times: dict[str, float] = {}

        def read() -> None:
            seen = b""
            while piece := stream.answer.read1(1 << 16):
                times.setdefault("first", time.monotonic())
                seen += piece
                if b"moof" in seen:
                    times["media"] = time.monotonic()
                    return

        reader = threading.Thread(target=read)
        reader.start()
        for tag in headers:
            client.tag(tag)
        began, key = time.monotonic(), 0.0
        for tag in media:
            wait = began + tag.milliseconds / 1000 - time.monotonic()
            if wait > 0:
                time.sleep(wait)
            client.tag(tag)
            if tag.type == VIDEO and not key:
                key = time.monotonic()
            if not reader.is_alive():
                break
        reader.join(5)
        stream.close()
        client.close()
        found.append(((times["first"] - key) * 1000, (times["media"] - key) * 1000))
    return found


def idle_viewer(crowd: Crowd, certificate: list[str], resets: int | None = None) -> tuple[float, float]:
    """Bytes of memory for each of `IDLE` viewers that have sent one request and keep their connection, and bytes that the server
    keeps of all when they have been gone for a minute. The server has had no viewers before, because memory left by earlier ones
    would be reused. With `resets` (0) over HTTP/2 with TLS."""
    with peers.weir("--max-viewers", "100000", "--window", "20s", *certificate, listeners=("http", "https", "rtmp")) as server:
        publisher = Publisher(server.rtmp, "bench", 200)
        url = playlist(server, "bench")
        time.sleep(26)  # the window is full
        before = meter.memory_bytes(server.process.pid)["total"]
        process = crowd.start(url if resets is None else url.replace(server.web, server.addresses["https"]), IDLE, "idle", 14, resets)
        if resets is not None:
            process.stdout.readline()  # all have shaken hands, which takes most of the minute after which the server ends idle ones
        time.sleep(9 if resets is None else 3)
        during = meter.memory_bytes(server.process.pid)["total"]
        report = json.loads(process.communicate(timeout=60)[0])
        if report["failures"]:
            raise RuntimeError(f"{IDLE} idle viewers: {report}")
        time.sleep(60)
        after = meter.memory_bytes(server.process.pid)["total"]
        publisher.stop()
        return (during - before) / IDLE, after - before


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def _behind(found: dict) -> str:
    """How far the last player was behind the first at the newest part that all had."""
    return f"{found['behind_ms'][-1]:.1f} ms" if found["behind_ms"] else "no part was had by all before the next"


def run(rounds: int) -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 65_536), hard))
    rows: dict[str, list[dict]] = {}
    delays: list[float] = []
    with peers.folder() as folder:
        crowd = Crowd(folder)
        certificate = delivery.certificate(folder)
        idle = [idle_viewer(crowd, certificate), idle_viewer(crowd, certificate, 0)]
        flags = ["--max-viewers", "100000", "--window", "20s", *certificate]
        with peers.weir(*flags, listeners=("http", "https", "rtmp")) as server:
            pid = server.process.pid
            publisher = Publisher(server.rtmp, "bench", int(70 + rounds * (len(WAYS) * len(CROWDS) * 16 + 40)))
            url = playlist(server, "bench")
            secure = url.replace(server.web, server.addresses["https"])
            time.sleep(8)  # the server knows the distance of key frames by now
            delays = latencies(url, publisher, 12)
            starts = beginnings(server, 10)
            for turn in range(rounds):
                for name, count, mode in CROWDS:
                    for way, resets in WAYS:
                        rows.setdefault(name + way, []).append(
                            crowd.run(url if resets is None else secure, count, mode, pid, resets))
                print(f"low latency round {turn + 1}/{rounds}: " + "; ".join(
                    f"{name} {v[-1]['cpu']:.1f} % {_behind(v[-1])}" for name, v in rows.items()), flush=True)
            publisher.stop()
    plain_cpu = {name: [one["cpu"] for one in rows[name]] for name, _, _ in CROWDS}
    body = []
    for name, found in rows.items():
        # Over TLS the kernel's times are those of encrypted records, which several responses may share.
        behind, written = ([value for one in found for value in one.get(key, [])] for key in ("behind_ms", "written_behind_ms"))
        beside = plain_cpu[name.split(", HTTP/2", 1)[0]]
        # Nothing, where the players were behind by more than a part.
        seen, late = ([f"{meter.median(some):.1f}", f"{percentile(some, 0.99):.1f}"] if some else ["", ""] for some in (behind, written))
        body.append([name, meter.spread([one["cpu"] for one in found]),
                     f"{meter.median(one['cpu'] / other for one, other in zip(found, beside)):.2f}", *seen, *late,
                     f"{meter.median(one['requests'] for one in found) / (SECONDS + 3):,.0f}"])
    return (
        f"Low latency: parts of 200 ms of a 3 Mbit/s stream; the players run on the same two cores, on one thread; CPU "
        f"is the median (min–max) of {rounds} rounds, the rest is of all parts in all of them.\n\n"
        + meter.table(["crowd", "server CPU, % of a core", "÷ HTTP/1.1", "last behind first, median ms", "99 %, ms", "last written behind first, median ms",
                       "99 %, ms", "requests/s"], body)
        + f"\nFrom the last byte of a part's newest frame over RTMP to the whole part at a waiting client: median "
          f"{meter.median(delays):.2f} ms, 99 % {percentile(delays, 0.99):.2f} ms ({len(delays)} parts). An idle viewer "
          f"({IDLE:,} of them, the first of this server) costs {idle[0][0] / 1024:.1f} KiB of its memory; a minute after they have left, "
          f"{idle[0][1] / 2**20:.1f} MiB of all stay. Over HTTP/2 with TLS it is {idle[1][0] / 1024:.1f} KiB and {idle[1][1] / 2**20:.1f} MiB. `stream.mp4` begins "
          f"{meter.spread([first for first, _ in starts])} ms after the first key frame, its first fragment comes "
          f"{meter.spread([media for _, media in starts])} ms after it ({len(starts)} streams).\n")
