"""Tracks that come and go during playback: audio that comes late or ends, video that comes late, another frame size, a
clock that jumps. Viewers continue, in each layout of HLS (with WEIR_FAULTS=long: with each engine of the page)."""

import concurrent.futures
import contextlib
import dataclasses
import itertools
import os
import threading
import time

import pytest

import watching
from harness import flv, publishers, scripts
from harness.flv import AUDIO, VIDEO
from harness.rawrtmp import RawRTMP

LAYOUTS = {
    "interleaved": ("--hls-layout", "interleaved"),
    "separate": ("--hls-layout", "separate"),
    # Audio is separate there, and the page itself chooses HLS.
    "ladder": ("--ladder", "90p@100k"),
}
LONG = os.environ.get("WEIR_FAULTS") == "long"
#: Each engine in each layout. An ordinary run has time only for the combination in which most can go wrong.
WAYS = [("separate", "hls")]
if LONG:
    WAYS += [("separate", "mse"), ("interleaved", "mse"), ("interleaved", "hls"), ("ladder", "hls")]
#: `make faults` checks with each engine what the other browser tests check in part.
thorough = pytest.mark.skipif(not LONG, reason="only in long runs (WEIR_FAULTS=long)")


@pytest.fixture(scope="module", params=WAYS, ids=["-".join(way) for way in WAYS])
def server(request, start_shared):
    """A server, and the engine with which the page plays its streams."""
    layout, way = request.param
    weir = start_shared("--no-record", *LAYOUTS[layout], "--target-duration", "2", "--segment-duration", "1s")
    weir.way = way
    weir.query = f"?player={way}" if layout != "ladder" else ""
    return weir


@contextlib.contextmanager
def publishing(server, name, *pieces):
    """Publishes tags in the background, each piece by its own clock, until the end of the test."""
    watched = threading.Event()

    def publish():
        with RawRTMP(server.rtmp).start(name) as client:
            for tags in pieces:
                began, first = time.monotonic(), None
                for tag in tags:
                    first = tag.milliseconds if first is None else first
                    due = began + (tag.milliseconds - first) / 1000
                    if watched.wait(max(0, due - time.monotonic())):
                        break
                    client.drain()
                    client.tag(tag)
            client.finish()

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        job = pool.submit(publish)
        try:
            yield
        finally:
            watched.set()
        job.result(60)


def over_and_over(film, times):
    """A film several times in a row, on one clock."""
    once = scripts.tags_of(film)
    length = max(tag.milliseconds for tag in once if tag.type == VIDEO) + 33
    return [tag for n in range(times) for tag in flv.shifted(once, n * length) if n == 0 or not tag.is_header]


def from_then_on(tags, kind, joined):
    """The tags without those of one kind until `joined` is set. The header of that kind comes with its first tag. The metadata
    is left out, because it would announce the kind."""
    header = next(tag for tag in tags if tag.type == kind and tag.is_header)
    is_there = False
    for tag in tags:
        if tag.type == kind and not is_there and not tag.is_header and joined.is_set() and (kind == AUDIO or tag.is_key):
            is_there = True
            yield dataclasses.replace(header, milliseconds=tag.milliseconds)
        if tag.type == AUDIO + VIDEO - kind or tag.type == kind and is_there:
            yield tag


def goes_on(browser, seconds=1):
    """The playhead advances in media that needs no waiting."""
    watching.wait_phase(browser, "playing")
    watching.play_on(browser, seconds)
    assert watching.state(browser)["error"] is None


def is_heard(browser):
    then = watching.state(browser)["audioBytes"]
    browser.wait(f"document.querySelector('#video').webkitAudioDecodedByteCount > {then} + 10000", 20)


#: From here on `shown` has the media time of each frame on the screen.
NOTE_FRAMES = """(() => {
  const video = document.querySelector("#video");
  window.shown = [];
  const note = (now, { mediaTime }) => {
    window.shown.push(mediaTime);
    video.requestVideoFrameCallback(note);
  };
  video.requestVideoFrameCallback(note);
})()"""


@pytest.fixture
def lost(chromium, server):
    """The name of a stream that plays with audio, and whose publisher was lost."""
    name = f"silent-{server.way}"
    publisher = publishers.ffmpeg("loop", f"{server.rtmp}/live/{name}", loop=-1)
    try:
        server.wait_state(name, "live", seconds=40)
        watching.watch(chromium, server, name, server.query)
        is_heard(chromium)
    finally:
        publisher.kill()
    watching.wait_phase(chromium, "reconnecting")
    return name


def test_goes_on_when_the_audio_goes_and_again_when_it_returns(chromium, server, lost):
    name = lost
    publisher = publishers.ffmpeg("loop", f"{server.rtmp}/live/{name}", loop=-1, options=("-an",))
    try:
        server.wait_state(name, "live")
        goes_on(chromium)
        assert "AAC" not in chromium.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.wait_phase(chromium, "reconnecting")
    publisher = publishers.ffmpeg("loop", f"{server.rtmp}/live/{name}", loop=-1)
    try:
        server.wait_state(name, "live")
        goes_on(chromium)
        is_heard(chromium)
        assert "AAC" in chromium.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.leave(chromium)


def test_audio_that_comes_late_is_heard(chromium, server):
    name = f"late-audio-{server.way}"
    joined = threading.Event()
    with publishing(server, name, from_then_on(over_and_over("loop", 15), AUDIO, joined)):
        server.wait_state(name, "live", seconds=40)
        watching.watch(chromium, server, name, server.query)
        assert watching.state(chromium)["audioBytes"] == 0
        joined.set()
        chromium.wait("document.querySelector('#video').webkitAudioDecodedByteCount > 10000")
        goes_on(chromium)
        watching.leave(chromium)


@thorough
def test_audio_that_stops_without_notice_holds_no_viewer_up(chromium, server):
    name = f"audio-stops-{server.way}"
    tags = [t for t in over_and_over("short", 10) if t.type != AUDIO or not 8000 < t.milliseconds < 20_000]
    with publishing(server, name, tags):
        server.wait_state(name, "live", seconds=40)
        watching.watch(chromium, server, name, server.query)
        is_heard(chromium)
        before = watching.state(chromium)["time"]
        chromium.wait(f"document.querySelector('#video').currentTime > {before} + 12", 40)
        goes_on(chromium)
        watching.leave(chromium)


def test_video_that_comes_late_is_seen(chromium, server):
    name = f"late-video-{server.way}"
    joined = threading.Event()
    with publishing(server, name, from_then_on(over_and_over("loop", 15), VIDEO, joined)):
        server.wait_state(name, "live", seconds=40)
        watching.watch(chromium, server, name, server.query)
        assert watching.state(chromium)["width"] == 0
        joined.set()
        chromium.wait("document.querySelector('#video').videoWidth === 320")
        goes_on(chromium)
        is_heard(chromium)
        watching.leave(chromium)


@thorough
def test_another_size_in_mid_stream_is_seen(chromium, server):
    name = f"size-{server.way}"
    first = over_and_over("short", 2)
    end = max(tag.milliseconds for tag in first if tag.type == VIDEO) + 33
    with publishing(server, name, first + flv.shifted(scripts.tags_of("small"), end)
                    + flv.shifted(over_and_over("small", 2), end + 4000)):
        server.wait_state(name, "live", seconds=40)
        assert watching.watch(chromium, server, name, server.query)["width"] == 320
        chromium.wait("document.querySelector('#video').videoWidth === 256", 25)
        goes_on(chromium)
        is_heard(chromium)
        watching.leave(chromium)


@thorough
@pytest.mark.parametrize("milliseconds", [36_000_000, -3_600_000], ids=["ahead", "back"])
def test_a_clock_that_jumps_holds_no_viewer_up(chromium, server, milliseconds):
    name = f"jump-{server.way}-{'ahead' if milliseconds > 0 else 'back'}"
    start = max(0, -milliseconds)
    first = flv.shifted(over_and_over("short", 2), start)
    then = [tag for tag in over_and_over("short", 4) if not tag.is_header]
    then = flv.shifted(then, start + 8000 + milliseconds)
    # Both are published by their own clock.
    with publishing(server, name, first, then):
        server.wait_state(name, "live", seconds=40)
        watching.watch(chromium, server, name, server.query)
        before = watching.state(chromium)["time"]
        chromium.wait(f"document.querySelector('#video').currentTime > {before} + 12", 30)
        assert watching.state(chromium)["time"] < before + 60
        watching.leave(chromium)


@thorough
def test_audio_that_went_and_returned_is_heard_again_from_the_window(chromium, server):
    name = f"window-{server.way}"
    for options in ((), ("-an",)):
        publisher = publishers.ffmpeg("short", f"{server.rtmp}/live/{name}", loop=-1, options=options)
        try:
            server.wait_state(name, "live", seconds=40)
            time.sleep(5)  # real time: media of that length
        finally:
            publisher.kill()
        server.wait_state(name, "reconnecting")
    publisher = publishers.ffmpeg("short", f"{server.rtmp}/live/{name}", loop=-1)
    try:
        server.wait_state(name, "live")
        watching.watch(chromium, server, name, server.query)
        is_heard(chromium)
        chromium.wait("document.querySelector('#seek').max - document.querySelector('#seek').min > 9")
        place = watching.seek_to(chromium, chromium.evaluate(
            "document.querySelector('#seek').max - document.querySelector('#seek').min - 1"))
        is_heard(chromium)
        assert watching.state(chromium)["time"] < place + 5
        # Over the silence in the middle, whose frames are shown, into the audio at the end.
        chromium.evaluate(NOTE_FRAMES)
        chromium.wait(f"document.querySelector('#video').currentTime > {place} + 12", 40)
        is_heard(chromium)
        shown = sorted(chromium.evaluate("window.shown"))
        assert max(b - a for a, b in itertools.pairwise(shown)) < 1.5, shown
        assert watching.state(chromium)["error"] is None
    finally:
        publisher.kill()
    watching.leave(chromium)
