"""A second audio that comes late, falls silent, changes its codec and goes: the player of the video and the first audio beside
it neither stands still for it nor gets its media later. Judged beside a player of the same film without the changes, in the same
page."""

import http.client
import statistics
import threading
import time
import urllib.parse

import pytest

import watching
from harness import inband, transport
from test_changing_tracks import CHANGED, FIRST, SECOND, VIDEO, make
from test_embedding import Site

SECONDS = 24
STAGES = [(0, {VIDEO, FIRST}), (8 / SECONDS, {VIDEO, FIRST, SECOND}), (13 / SECONDS, {VIDEO, FIRST, CHANGED}),
          (18 / SECONDS, {VIDEO, FIRST})]
#: The second audio is in the program map, and nothing comes of it.
SILENCE = (10, 13)
NAMES = ("cam", "neighbour")

#: From here on `seen` has where each player is and where its media ends, 20 times a second.
NOTE_POSITIONS = """(() => {
  const videos = [...document.querySelectorAll("weir-player")].map((player) => player.video);
  window.seen = videos.map(() => []);
  setInterval(() => {
    const now = performance.now();
    videos.forEach(({ currentTime, buffered }, n) => {
      seen[n].push([now / 1000, currentTime, buffered.length > 0 ? buffered.end(buffered.length - 1) : 0]);
    });
  }, 50);
})()"""
STATES = """[...document.querySelectorAll("weir-player")].map(({ video, phase }) => (
  { phase, source: video.currentSrc, error: video.error?.message ?? null, audio: video.webkitAudioDecodedByteCount }))"""


def upload(url: str, stream: bytes) -> None:
    """Publishes a transport stream by its own clock."""
    address = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=30)
    connection.putrequest("POST", address.path)
    connection.putheader("Content-Type", "video/mp2t")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    began = time.monotonic()
    for due, piece in transport.paced(stream, SECONDS):
        time.sleep(max(0, began + due - time.monotonic()))
        connection.send(b"%x\r\n%b\r\n" % (len(piece), piece))
    connection.send(b"0\r\n\r\n")
    assert connection.getresponse().status < 300
    connection.close()


def silenced(stream: bytes, pid: int) -> bytes:
    """The stream without what the elementary stream has during the silence."""
    packets = [stream[at:at + transport.PACKET] for at in range(0, len(stream), transport.PACKET)]
    first, last = (round(len(packets) * second / SECONDS) for second in SILENCE)
    return b"".join(packet for n, packet in enumerate(packets)
                    if not (first <= n < last and int.from_bytes(packet[1:3]) & 0x1FFF == pid))


def standstills(positions: list[list[float]]) -> list[float]:
    """Seconds for which the position did not change, each time."""
    found, since = [], positions[0]
    for now, position, _ in positions[1:]:
        if position != since[1]:
            found.append(now - since[0])
            since = (now, position)
    return found + [positions[-1][0] - since[0]]


def jumps(positions: list[list[float]]) -> list[float]:
    """How much further the position went than time did, at each step."""
    return [(b[1] - a[1]) - (b[0] - a[0]) for a, b in zip(positions, positions[1:])]


def lag(seen: list[list[list[float]]], first: float, last: float) -> float:
    """By how much less media the first player had than the second one, in the middle of what was noted from `first` to `last`."""
    found = [other[2] - own[2] for own, other in zip(*seen) if first <= own[0] < last]
    assert len(found) > 20, "too little was noted"
    return statistics.median(found)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    whole = make(tmp_path_factory.mktemp("film") / "whole.ts", SECONDS).read_bytes()
    return {"cam": silenced(inband.with_changing_map(whole, STAGES), SECOND), "neighbour": inband.with_changing_map(whole, STAGES[:1])}


@pytest.mark.quiet
@pytest.mark.long
def test_the_player_of_other_tracks_does_not_stand_still(start, chromium, films, record_property):
    site = Site()
    # Both are served track by track from the beginning on.
    weir = start("--hls-layout", "separate", "--target-duration", "2", "--no-record", "--embed-from", site.origin)
    # Each player has its own connections: browsers count them by host.
    hosts = dict(zip(NAMES, (weir.web, weir.web.replace("127.0.0.1", "localhost"))))
    site.pages["/"] = f'<script type="module" src="{weir.web}/web/weir-player.js"></script>' + "".join(
        f'<weir-player src="{hosts[name]}/watch/{name}" engine="mse" autoplay></weir-player>' for name in NAMES)
    chromium.open(site.origin)
    threads = [threading.Thread(target=upload, args=(f"{weir.web}/live/{name}/ingest", film)) for name, film in films.items()]
    began = chromium.evaluate("performance.now() / 1000")
    for thread in threads:
        thread.start()
    chromium.wait("[...document.querySelectorAll('weir-player')].every((p) => p.phase === 'playing')", 30)
    chromium.evaluate(NOTE_POSITIONS)
    before = chromium.evaluate(STATES)
    assert len(weir.stream("cam")["tracks"]) == 2, "the players began after the first change"
    weir.wait(lambda: any(t["rendition"] == "audio-2" for t in weir.stream("cam")["tracks"]), 20, "the late track")
    weir.wait(lambda: weir.stream("cam")["tracks"][-1]["codec"] == "Opus", 20, "the other codec")
    weir.wait(lambda: len(weir.stream("cam")["tracks"]) == 2, 20, "the track's end")
    time.sleep(3)  # real time: what is played after the last change
    seen, after = chromium.evaluate("window.seen"), chromium.evaluate(STATES)
    watching.leave(chromium)
    site.stop()
    for thread in threads:
        thread.join(30)
    for then, now in zip(before, after):
        assert now["phase"] == "playing" and now["error"] is None and now["source"] == then["source"], (then, now)
        assert now["audio"] > then["audio"] + 50_000, (then, now)
    stood, jumped, played = (dict(zip(NAMES, values)) for values in (
        [max(standstills(positions)) for positions in seen], [max(jumps(positions)) for positions in seen],
        [positions[-1][1] - positions[0][1] for positions in seen]))
    for name in NAMES:
        record_property("figure", f"{name}: {stood[name]:.2f} s of standstill at most, {played[name]:.2f} s played, "
                                  f"steps {jumped[name]:.2f} s longer than time at most")
    # What a cut may wait for a silent track shows here: 0.3 s, if every one waited.
    (usual, silent) = (lag(seen, began + first, began + last) for first, last in ((0, 8), (SILENCE[0] + 0.5, SILENCE[1] + 0.5)))
    record_property("figure", f"media later than the neighbour's: {usual:.2f} s before the late track, {silent:.2f} s in its silence")
    # Positions are noted 20 times a second.
    assert stood["cam"] <= 2 * max(stood["neighbour"], 0.1), stood
    assert jumped["cam"] <= 2 * max(jumped["neighbour"], 0.1), jumped
    assert abs(played["cam"] - played["neighbour"]) < 1, played
    assert silent - usual < 0.1, (usual, silent)
