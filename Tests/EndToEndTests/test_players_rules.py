"""Needs of browser players beyond the standards, checked without them: patches that dash.js and Shaka Player apply as RFC
5261 means them (harness/mpd_players.py), and incomplete segments that end, on every rung. `make players` checks the same in
the players themselves."""

import http.client
import re
import threading
import time
import urllib.parse
import xml.etree.ElementTree as ElementTree

import pytest

from harness import dash, http as web, mpd_players, publishers, sources

NAME = "cam"
RULES = ("rfc5261", "dash.js", "shaka")


class Watching:
    """A published manifest, and one follower's state of it."""

    def __init__(self, url: str, rules: str, said: dict[str, str]):
        self.follower = mpd_players.Follower(url, rules)
        self.said = said
        self.known: list = []
        self.patches: list[str] = []
        self.problems: list[str] = []

    def step(self) -> None:
        if self.known and self.known[-1].get("type") == "static":
            return
        try:
            patch = self.follower.update()
            self.patches += [patch] if patch else []
        except AssertionError as error:
            self.problems.append(f"{self.follower.rules}: {error}")
            self.follower.fetch_whole()
        self.known.append(self.follower.manifest)
        now = dash.moment(web.fetch(self.follower.url.split("/live/")[0] + "/time").good().text)
        if why := self.follower.stands_still(now):
            self.problems.append(why)

    @property
    def beginnings(self) -> set[str]:
        """Times of the first segments in the window."""
        return {known.find(f".//{{{dash.NAMESPACE}}}S").get("t") for known in self.known}

    @property
    def periods(self) -> set[str]:
        return {period.get("id") for known in self.known for period in known.findall(f"{{{dash.NAMESPACE}}}Period")}

    def differences(self) -> list[str]:
        """Where its state differs from the manifest published at the same time."""
        pairs = [(known, self.said.get(known.get("publishTime"))) for known in self.known]
        found = [mpd_players.difference(known, ElementTree.fromstring(said)) for known, said in pairs if said]
        assert len([said for _, said in pairs if said]) >= 10, "too few of them were caught"
        return [f"{self.follower.rules}: {one}" for one in found if one]


@pytest.fixture(scope="module")
def watched(start_shared):
    """A stream whose window moves, that is lost, returns and ends, followed by each set of rules."""
    weir = start_shared("--no-record", "--window", "4s", "--segment-duration", "500ms")
    sources.source("loop")
    url, said = f"{weir.web}/live/{NAME}/manifest.mpd", {}
    over = threading.Event()

    def listen() -> None:
        while not over.is_set():
            answer = web.fetch(url)
            if answer.status == 200:
                said.setdefault(ElementTree.fromstring(answer.text).get("publishTime"), answer.text)
            time.sleep(0.02)

    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    weir.wait(lambda: web.fetch(url).status == 200, 20, "a manifest")
    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    watching = [Watching(url, rules, said) for rules in RULES]

    def follow(seconds: float, is_done, what: str) -> None:
        """For so long, and until it is so for each of them."""
        began = time.monotonic()
        while (passed := time.monotonic() - began) < seconds or not all(is_done(one) for one in watching):
            assert passed < 20, what
            for one in watching:
                one.step()
            time.sleep(0.15)

    follow(3.5, lambda one: len(one.beginnings) >= 2, "the window moves")
    publisher.kill()
    follow(1.5, lambda one: weir.stream(NAME)["state"] == "reconnecting", "it is lost")
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{NAME}", loop=-1)
    follow(0, lambda one: len(one.periods) >= 2, "it came back")
    follow(1, lambda one: len(one.beginnings) >= 4, "the window moves on")
    publisher.interrupt()
    publisher.outcome(20)
    follow(0, lambda one: one.known[-1].get("type") == "static", "it ended")
    over.set()
    listener.join(5)
    return watching


def test_the_stream_had_all_that_can_happen(watched):
    assert len(watched[0].beginnings) >= 4, "the window moves"
    assert len(watched[0].periods) >= 2, "it came back"
    assert watched[0].known[-1].get("type") == "static", "it ended"


def test_a_patch_touches_whole_entries_with_their_positions_and_nothing_else(watched):
    patches = [patch for one in watched for patch in one.patches]
    problems = sorted({problem for patch in patches for problem in mpd_players.refuse(patch)})
    assert problems == [], problems


@pytest.mark.parametrize("number", range(len(RULES)), ids=RULES)
def test_who_follows_by_patches_knows_what_the_manifest_says(watched, number):
    one = watched[number]
    assert one.problems == [], one.problems[:5]
    assert one.differences() == [], one.differences()[:5]


def test_segments_in_the_making_end_with_their_publisher(start):
    """Segments of the source and of a rung: a response in progress ends when the publisher is lost. Without B-frames, no later
    frame of the rung would end it. They are long: those of a busy machine are still in the making then."""
    weir = start("--no-record", "--ladder", "90p@100k", "--segment-duration", "6s", "--target-duration", "10")
    publisher = publishers.ffmpeg("straight", f"{weir.rtmp}/live/{NAME}", loop=-1)
    begun, ends = [], {}
    try:
        found = weir.wait(lambda: re.search(r"(\w+)/90p/", weir.get(f"/live/{NAME}/index.m3u8").text), 30, "the rung", 0.2)
        folder = f"/live/{NAME}/{found[1]}"

        def complete(rendition: str) -> int:
            text = weir.get(f"{folder}/{rendition}/index.m3u8", timeout=20).good().text
            return int(re.search(r"MEDIA-SEQUENCE:(\d+)", text)[1]) + text.count("#EXTINF") - 1

        def take(rendition: str, headers: dict[str, str]) -> None:
            number = complete(rendition)
            place = urllib.parse.urlsplit(weir.web)
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=15)
            connection.request("GET", f"{folder}/{rendition}/{number + 1}.m4s", headers=headers)
            begun.append(rendition)
            connection.getresponse().read()
            ends[rendition, str(headers)] = time.monotonic()

        # A segment that was near its end ends by itself: the next one is at its beginning.
        for _ in range(3):
            begun.clear()
            ends.clear()
            threads = [threading.Thread(target=take, args=(rendition, headers), daemon=True)
                       for rendition in ("video", "audio", "90p") for headers in ({}, {"Range": "bytes=100-"})]
            for thread in threads:
                thread.start()
            weir.wait(lambda: len(begun) == len(threads), 20, "all are being sent", 0.02)
            time.sleep(0.4)
            if not ends:
                break
            for thread in threads:
                thread.join(15)
        assert not ends, "all are in the making"
        publisher.process.kill()
        killed = time.monotonic()
        for thread in threads:
            thread.join(15)
        late = {key: end - killed for key, end in ends.items() if end > killed + 5}
        assert len(ends) == len(threads) and not late, late
    finally:
        publisher.kill()


@pytest.fixture(scope="module")
def ladder(start_shared):
    """A stream with a rung."""
    weir = start_shared("--no-record", "--ladder", "90p@100k")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    url = f"{weir.web}/live/{NAME}/manifest.mpd"
    try:
        weir.wait(lambda: 'id="90p"' in (text := weir.get(url).text) and "availabilityTimeOffset" in text, 30, "the rung", 0.2)
        yield url
    finally:
        publisher.kill()


def growing(url: str) -> dict[str, dash.Entry]:
    """The newest segment of each representation."""
    manifest = dash.parse(web.fetch(url).good().text, url)
    return {r.id: r.entries[-1] for r in manifest.representations}


def taken(url: str, rendition: str, known: dash.Entry, headers: dict[str, str], told: list[str]) -> None:
    """Requests the next segment while it is made, and reports if its response does not end."""
    while (entry := growing(url)[rendition]) == known:
        time.sleep(0.02)
    parts = urllib.parse.urlsplit(entry.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=10)
    began = time.monotonic()
    try:
        connection.request("GET", parts.path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except TimeoutError:
        told.append(f"{rendition} {parts.path} {headers}: no end after {time.monotonic() - began:.1f} s")
        return
    finally:
        connection.close()
    whole = web.fetch(entry.url).good().body
    if body != whole:
        told.append(f"{rendition} {parts.path} {headers}: {len(body)} bytes, the segment has {len(whole)}")


@pytest.mark.parametrize("headers", [{}, {"Range": "bytes=0-"}], ids=["chunked", "open-range"])
def test_each_growing_segment_of_each_rung_ends(ladder, headers):
    told: list[str] = []
    for _ in range(2):
        threads = [threading.Thread(target=taken, args=(ladder, rendition, entry, headers, told), daemon=True)
                   for rendition, entry in growing(ladder).items() for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(15)
    assert told == [], told
