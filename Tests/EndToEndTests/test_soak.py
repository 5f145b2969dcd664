"""A day of a server's life in 24 minutes (`make soak`): its resources stay as they were after the first hour, and no frame is
lost.

Publishers send media at sixty times real time, and every frame of them is known. Beside them runs constant activity:
publishers that are cut off, replaced or return; viewers of each protocol; recordings that are split, removed, cut and
restored; pages and requests. WEIR_SOAK_HOURS are hours of media, 24 by default. Fewer than 13 cannot show whether something
grows.
"""

import collections
import contextlib
import http.client
import itertools
import os
import pathlib
import random
import re
import threading
import time
import urllib.parse

import pytest

from harness import dash, hls, http as web, nothing_wrong, scripts
from harness.gauges import MEBIBYTE, Gauges, rise, slope
from harness.ledger import Ledger
from harness.marathon import AUDIO_FRAMES, ROUND, VIDEO_FRAMES, Reel, Runner
from harness.metrics import Metrics
from harness.rawrtmp import Closed, RawRTMP

pytestmark = [pytest.mark.long, pytest.mark.skipif("WEIR_SOAK" not in os.environ, reason="skipped: it takes an hour (make soak)")]

SPEED = 60
HOURS = float(os.environ.get("WEIR_SOAK_HOURS", 24))
SECONDS = HOURS * 3600 / SPEED
#: Time until buffers, windows and tables have their final size: the first hour of media (or a third of a shorter run).
WARM = min(3600, HOURS * 3600 / 3) / SPEED
#: Seconds for which read files stay open. Until then the number of descriptors grows.
KEPT = 360
KEY, TOKEN = "a-key-of-the-soak", "a-token-of-the-soak"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
FLAGS = ("--publish-key", KEY, "--admin-token", TOKEN, "--record-split", "each:1h", "--rewind", "30m",
         "--retain-stream-size", "300MB", "--retain-deleted", "30s", "--keep-free", "2GB")
ENDLESS, CUT, GUEST = ("endless-1", "endless-2"), "cut", "guest"
JEMALLOC = pathlib.Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")
ALLOCATORS = {"glibc": {"MALLOC_ARENA_MAX": "2"}, "jemalloc": {"LD_PRELOAD": str(JEMALLOC)}}
HINT = re.compile(r'PRELOAD-HINT:TYPE=PART,URI="(\d+)\.(\d+)\.m4s"')


class Life:
    """All activities, each in its own thread, until they are stopped."""

    def __init__(self, weir, reel: Reel):
        self.weir, self.reel = weir, reel
        self.ending = threading.Event()
        self.problems: list[str] = []
        #: Counts of actions by their result.
        self.done: collections.Counter = collections.Counter()
        self.threads: list[threading.Thread] = []

    def start(self, *works) -> None:
        for work in works:
            self.threads.append(threading.Thread(target=self._repeat, args=(work,), daemon=True))
            self.threads[-1].start()

    def _repeat(self, work) -> None:
        for turn in itertools.count():
            if self.ending.is_set():
                return
            try:
                work(turn)
            except (AssertionError, OSError, http.client.HTTPException, Closed) as error:
                # Viewers of a publisher that is cut off see an error. Other errors are counted and reported.
                self.done[f"{work.__name__}: {type(error).__name__}"] += 1
                if len(self.problems) < 20:
                    self.problems.append(f"{work.__name__}: {error!r}")
                self.ending.wait(1)

    def end(self) -> None:
        self.ending.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "something of it does not end"

    def ask(self, what: str, path: str, *good: int, method: str = "GET", headers: dict | None = None) -> web.Response:
        """A request whose status must be one of these (default 200 and 206)."""
        answer = self.weir.get(path, method=method, headers=headers or {})
        self.done[f"{what} {answer.status}"] += 1
        assert answer.status in (good or (200, 206)), f"{what}: {path}: {answer.status} {answer.body[:200]!r}"
        return answer

    # Publishers

    def endless(self, runner: Runner):
        """One publication over all the hours."""
        def publish(turn: int) -> None:
            runner.begin()
            runner.run(SECONDS)
            runner.client.finish()
            self.ending.wait()

        return publish

    def cut(self, runner: Runner):
        """Thirteen minutes of media each. Then the connection is closed, is lost, or goes silent, or the publication is ended,
        before the recording is an hour long. A further file would be named by a time far ahead of the clock, as the media is. By
        then everything it sent has been read and is in the recording."""
        def publish(turn: int) -> None:
            dead, runner.client = runner.client, None
            runner.begin()
            if dead is not None:
                dead.close()
            runner.run(13)
            way = ("closed", "reset", "silent", "goodbye")[turn % 4]
            self.done[f"publisher {way}"] += 1
            if way != "closed":
                time.sleep(1)  # real time: what was sent is read and recorded
            if way == "silent":
                return
            getattr(runner.client, {"closed": "close", "reset": "reset", "goodbye": "finish"}[way])()
            runner.client = None
            self.ending.wait(random.Random(turn).uniform(0.2, 2))

        return publish

    def guest(self, turn: int) -> None:
        """Publishes for seconds, in real time; its recording is stopped, started, discarded."""
        with RawRTMP(self.weir.rtmp).start(f"{GUEST}?key={KEY}") as client:
            player = threading.Thread(target=client.play_out, args=(scripts.tags_of("short"),), daemon=True)
            player.start()
            self.weir.wait_state(GUEST, "live")
            for action in (("stop", "start"), ("cancel", "start"), ())[turn % 3]:
                time.sleep(0.7)
                # If the last one has not ended yet, or the next one has no media, there is a conflict.
                self.ask(f"recording {action}", f"/api/v1/streams/{GUEST}/recording/{action}", 200, 202, 409,
                         method="POST", headers=ADMIN)
            player.join()
            client.finish()
        self.weir.wait_state(GUEST, "ended")
        self.ending.wait(2)

    # Viewers

    def media(self, name: str) -> str:
        url = f"{self.weir.web}/live/{name}/index.m3u8"
        top = hls.parse_multivariant(self.ask("hls", url).text, url)
        return top.absolute(top.variants[0].uri)

    def watch_parts(self, turn: int) -> None:
        """Low-Latency HLS: requests that wait for the next part, and for the hinted part."""
        url = self.media(random.Random(turn).choice(ENDLESS))
        parts, query = urllib.parse.urlsplit(url), ""
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=20)
        end = time.monotonic() + 8
        with contextlib.closing(connection):
            while time.monotonic() < end and not self.ending.is_set():
                connection.request("GET", parts.path + query)
                answer = connection.getresponse()
                text = answer.read().decode()
                self.done[f"hls part {answer.status}"] += 1
                hint = HINT.search(text)
                if answer.status != 200 or hint is None:
                    break
                query = f"?_HLS_msn={hint[1]}&_HLS_part={hint[2]}" + "&_HLS_skip=YES" * (turn % 2)
                connection.request("GET", urllib.parse.urljoin(parts.path, f"{hint[1]}.{hint[2]}.m4s"))
                connection.getresponse().read()
                self.ending.wait(0.05)
        self.ending.wait(1)

    def watch_dash(self, turn: int) -> None:
        url = f"{self.weir.web}/live/{ENDLESS[turn % 2]}/manifest.mpd"
        for _ in range(10):
            manifest = dash.parse(self.ask("dash", url).text, url)
            for representation in manifest.representations:
                # At sixty times real time, the oldest listed segments may be gone before they are requested.
                self.ask("dash segment", representation.entries[-1].url, 200, 404)
            if self.ending.wait(0.5):
                return

    def watch_stream(self, turn: int) -> None:
        """`stream.mp4`, left in the middle. Every fourth viewer reads nothing at all."""
        stream = web.Stream(f"{self.weir.web}/live/{(*ENDLESS, CUT)[turn % 3]}/stream.mp4")
        self.done[f"mp4 {stream.status}"] += 1
        try:
            end = time.monotonic() + 7
            while stream.status == 200 and time.monotonic() < end and not self.ending.is_set():
                if turn % 4 == 3:
                    self.ending.wait(1)
                elif not stream.answer.read1(1 << 18):
                    break
        finally:
            stream.close()
        self.ending.wait(1)

    def watch_behind(self, turn: int) -> None:
        """The programme on disk: its playlist, and segments that have left the memory."""
        url = urllib.parse.urljoin(self.media(ENDLESS[turn % 2]), "dvr.m3u8")
        programme = hls.parse_media(self.ask("dvr", url).text, url)
        for segment in random.Random(turn).sample(programme.segments, min(5, len(programme.segments))):
            self.ask("dvr segment", programme.absolute(segment.uri), 200, 404)
        self.ending.wait(4)

    # Visitors

    def browse(self, turn: int) -> None:
        for page in ("/", "/recordings", f"/watch/{ENDLESS[0]}"):
            text = self.ask("page", page).text
            for link in re.findall(r'(?:src|href)="(/[^"]+\.(?:js|css|svg))"', text):
                self.ask("page", link)
        self.ending.wait(5)

    def manage(self, turn: int) -> None:
        """The gallery: lists, thumbnails, clips of finished and running recordings, changes to what guests left."""
        for path in ("streams", "storage", "recordings?limit=5", f"streams/{ENDLESS[0]}"):
            self.ask("list", f"/api/v1/{path}")
        self.ask("metrics", "/metrics")
        running = self.weir.json(f"/api/v1/recordings?stream={ENDLESS[0]}&state=running")["recordings"]
        for entry in running[:1]:
            address = f"/api/v1/recordings/{ENDLESS[0]}/{entry['file']}"
            self.ask("key frames", f"{address}/keyframes")
            self.ask("clip", f"{address}/clip?from={max(0, entry['seconds'] - 120):.0f}&to={entry['seconds'] - 60:.0f}",
                     200, 400, 404, 409, 416)
        for entry in self.weir.json(f"/api/v1/recordings?stream={GUEST}&state=completed&limit=1")["recordings"]:
            self.change(entry)
        self.ending.wait(6)

    def change(self, entry: dict) -> None:
        # Retention may be faster.
        address = f"/api/v1/recordings/{GUEST}/{entry['file']}"
        self.ask("thumbnail", entry["thumbnail"], 200, 404)
        self.ask("movie", entry["url"], 206, 404, headers={"Range": "bytes=0-9999"})
        self.ask("clip", f"{address}/clip?from=0.5&to=1.5", 200, 404)
        for action in ("protect", "unprotect"):
            self.ask(action, f"{address}/{action}", 200, 404, method="POST", headers=ADMIN)
        self.ask("delete", address, 200, 404, method="DELETE", headers=ADMIN)
        self.ask("restore", f"{address}/restore", 200, 404, method="POST", headers=ADMIN)
        self.ask("delete", address, 200, 404, method="DELETE", headers=ADMIN)


@pytest.mark.parametrize("allocator", ALLOCATORS)
def test_a_day_leaves_nothing_behind_and_loses_nothing(start, tmp_path, record_property, allocator):
    if allocator == "jemalloc" and not JEMALLOC.exists():
        pytest.skip("skipped: libjemalloc2 is not installed")
    reel = Reel()
    weir = start(*FLAGS, environment=ALLOCATORS[allocator])
    runners = {name: Runner(weir.rtmp, name, KEY, reel, SPEED) for name in (*ENDLESS, CUT)}
    ledger = Ledger(weir, reel, list(runners))
    table = pathlib.Path(os.environ.get("WEIR_SOAK_TABLES", tmp_path)) / f"soak-{allocator}.tsv"
    gauges = Gauges(weir.process.pid, 10, table)
    life = Life(weir, reel)
    began = time.monotonic()
    life.start(*(life.endless(runners[name]) for name in ENDLESS), life.cut(runners[CUT]), life.guest)
    for name in ENDLESS:
        weir.wait_state(name, "live")
    life.start(life.watch_parts, life.watch_parts, life.watch_dash, life.watch_stream, life.watch_stream, life.watch_behind,
               life.browse, life.manage)
    weir.wait(lambda: time.monotonic() - began > SECONDS, SECONDS + 60, "a day", every=1)
    gauges.stop()
    life.end()
    if runners[CUT].client is not None:
        runners[CUT].client.close()
    weir.wait(lambda: not weir.json("/api/v1/recordings?state=running")["recordings"], 60, "all recordings are complete", every=1)
    ledger.stop()
    ledger.take()
    told = Metrics(weir)

    samples = [sample for sample in gauges.samples if sample.at >= WARM]
    hour = 3600 / SPEED
    figures = {value: slope(samples, value) for value in ("resident", "shared", "descriptors", "threads")}
    last, first, half = samples[-1], samples[0], samples[len(samples) // 2:]
    record_property("figure", (
        f"{HOURS:g} h of media with {allocator}: resident {first.resident / MEBIBYTE:.1f} MiB after the first hour, "
        f"{last.resident / MEBIBYTE:.1f} MiB at the end, {figures['resident'] * hour / MEBIBYTE:+.3f} MiB an hour of media "
        f"({figures['resident'] * 3600 / MEBIBYTE:+.2f} of the clock; {slope(half, 'resident') * hour / MEBIBYTE:+.3f} in "
        f"the second half); windows {figures['shared'] * hour / MEBIBYTE:+.3f}; "
        f"descriptors {rise(samples, 'descriptors'):+g} of {first.descriptors}, threads {rise(samples, 'threads'):+g} of "
        f"{first.threads}; CPU {last.cpu / last.at * 100:.0f} % of a core"))
    record_property("figure", f"{HOURS:g} h of media with {allocator}: " + ", ".join(
        f"{name} {account.counts['video']} frames of video and {account.counts['audio']} frames of audio in {len(account.files)} files, "
        f"{account.pauses} pauses" for name, account in ledger.accounts.items()))
    record_property("figure", f"{HOURS:g} h of media with {allocator}: " + ", ".join(
        f"{what} × {count}" for what, count in sorted(life.done.items())))

    if ledger.problems or life.problems:
        print(weir.text())
    nothing_wrong([*life.problems, *ledger.problems])
    for name, runner in runners.items():
        sent = {"video": runner.rounds * VIDEO_FRAMES, "audio": runner.rounds * AUDIO_FRAMES}
        assert ledger.accounts[name].counts == sent, f"{name}: sent {sent}"
        assert runner.rounds * ROUND / 1000 >= HOURS * 3600 * 0.7, f"{name}: only {runner.rounds} rounds"
    assert told.total("weir_recording_lost_seconds_total", cause="disk") == 0
    assert not re.search(r"^\S+ (error|critical) ", weir.text("err"), re.M), "the log tells of errors"
    if HOURS < 13:
        return  # What is kept for some minutes is still becoming more: a shorter run cannot tell what grows.
    assert figures["resident"] * hour <= MEBIBYTE
    assert figures["shared"] * hour <= MEBIBYTE
    kept = [sample for sample in samples if sample.at >= KEPT]
    assert rise(kept, "descriptors") <= 0.1 * kept[0].descriptors
    assert rise(samples, "threads") <= 1
