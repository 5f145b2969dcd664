"""The watch page plays the live stream, in each browser and with each engine."""

import pytest

import watching
from harness import publishers, tools, transport

WAYS = [("chromium", "native"), ("chromium", "mse"), ("firefox", "mse"), ("chromium", "hls"), ("firefox", "hls")]
PLAYERS = {"native": "native HLS", "mse": "Media Source, stream.mp4", "hls": "Media Source, HLS parts"}
#: The other browser's doubles of a way are tried by `make test-long`.
MARKED = [pytest.param(*way, id="-".join(way), marks=[pytest.mark.long] * (way == ("firefox", "hls"))) for way in WAYS]
#: Of media, in which frames and audio are counted.
SECONDS = 2


@pytest.fixture(scope="module")
def weir(start_shared):
    """Streams begin and end soon here. A native player may be far behind: it must still find the stream waiting when it gets there."""
    return start_shared("--no-record", "--segment-duration", "500ms", "--reconnect-window", "120s")


@pytest.mark.parametrize(("browser", "way"), MARKED, indirect=["browser"])
def test_plays_video_and_audio(browser, way, demo):
    watching.watch(browser, demo, "demo", f"?player={way}")
    # The stream has 30 frames per second of media. On a busy machine the browser drops some.
    first, last = watching.play_through(browser, SECONDS)
    seconds = last["played"] - first["played"]
    assert last["frames"] - last["dropped"] - first["frames"] + first["dropped"] >= 10 * seconds, f"{first} {last}"
    assert (last["width"], last["height"]) == (320, 180)
    assert last["muted"] and not last["paused"] and last["error"] is None
    if browser.name == "chromium":
        assert last["audioBytes"] > first["audioBytes"] + 1000, f"{first} {last}"
    else:
        assert browser.evaluate(watching.FIREFOX_LOUDNESS) > 0.05, "the noise is not heard"
    details = browser.evaluate(watching.DETAILS)
    assert details["Player"] == PLAYERS[way]
    assert "H.264 (avc1." in details["Codecs"] and "AAC (mp4a.40.2)" in details["Codecs"]
    assert browser.errors == []
    watching.leave(browser)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_the_pages_own_choice_is_the_way_of_least_delay(browser, demo):
    watching.watch(browser, demo, "demo")
    assert browser.evaluate(watching.DETAILS)["Player"] == "Media Source, stream.mp4"
    watching.leave(browser)


@pytest.mark.parametrize(("browser", "way", "most"), [("chromium", "mse", 6), ("firefox", "hls", 6), ("chromium", "native", 20)], indirect=["browser"])
def test_tells_its_latency(browser, way, most, demo):
    watching.watch(browser, demo, "demo", f"?player={way}")
    latency = watching.latency(browser)
    assert 0 < latency < most
    watching.leave(browser)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_waits_for_a_stream_plays_it_when_it_comes_and_says_when_it_has_ended(browser, weir):
    name = f"later-{browser.name}"
    browser.open(f"{weir.web}/watch/{name}?player=mse")
    assert watching.wait_phase(browser, "notStarted")["message"] == "Not started yet"
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        playing = watching.wait_phase(browser, "playing")
        assert (playing["width"], playing["height"]) == (320, 180)
        publisher.interrupt()
        ended = watching.wait_phase(browser, "ended")
        assert ended["message"] == "The stream has ended"
        assert ended["badge"] == "Ended"
    finally:
        publisher.kill()
    second = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        watching.wait_phase(browser, "playing")
        browser.wait("document.querySelector('#video').videoWidth === 256")
        watching.play_on(browser, 1)
    finally:
        second.kill()
    watching.leave(browser)


@pytest.mark.parametrize(("browser", "way"), MARKED, indirect=["browser"])
def test_goes_on_when_a_lost_publisher_returns_with_another_frame_size(browser, way, weir):
    name = f"returns-{browser.name}-{way}"
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, f"?player={way}")
    finally:
        publisher.kill()
    weir.wait_state(name, "reconnecting", seconds=10)
    if (browser.name, way) == ("chromium", "native"):
        # Chromium's own player appends the last segment again whenever it reloads an unchanged playlist, and may play on.
        before = watching.state(browser)
        assert before["phase"] in ("playing", "waiting", "reconnecting") and before["width"] == 320
    else:
        lost = watching.wait_phase(browser, "reconnecting", 80)
        assert lost["message"] == "Reconnecting" and lost["width"] == 320
    publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        browser.wait("document.querySelector('#video').videoWidth === 256", 40)
        watching.wait_phase(browser, "playing")
        watching.play_on(browser, 1)
        if way == "hls":
            publisher.interrupt()
            assert watching.wait_phase(browser, "ended")["message"] == "The stream has ended"
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize("film", ["audio-only", "video-only"])
@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_plays_streams_of_one_track(browser, film, weir):
    name = f"{film}-{browser.name}"
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, "?player=mse")
        watching.play_on(browser, 1.5)
        assert browser.evaluate("document.querySelector('#audio-only').hidden") is (film == "video-only")
        assert browser.evaluate("document.querySelector('#unmute').hidden") is (film == "video-only")
        assert browser.errors == []
    finally:
        publisher.kill()
    watching.leave(browser)


def test_names_the_codec_that_chromium_cannot_play(chromium, weir):
    publisher = publishers.ffmpeg("hevc", f"{weir.rtmp}/live/hevc", loop=-1)
    try:
        weir.wait_state("hevc", "live", seconds=40)
        chromium.open(f"{weir.web}/watch/hevc")
        said = watching.wait_phase(chromium, "unplayable")
        assert said["message"] == "This browser cannot play HEVC"
        assert "hvc1." in chromium.evaluate("document.querySelector('#message-text').textContent")
        assert chromium.errors == []
    finally:
        publisher.kill()
    watching.leave(chromium)


def test_plays_hevc_in_firefox(firefox, weir):
    publisher = publishers.ffmpeg("hevc", f"{weir.rtmp}/live/hevc-firefox", loop=-1)
    try:
        weir.wait_state("hevc-firefox", "live", seconds=40)
        watching.watch(firefox, weir, "hevc-firefox")
        first, last = watching.play_through(firefox, 2)
        assert last["frames"] > first["frames"] + 30, f"{first} {last}"
    finally:
        publisher.kill()
    watching.leave(firefox)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_plays_av1_with_opus(browser, weir):
    name = f"av1-{browser.name}"
    publisher = publishers.ffmpeg("av1-opus", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, "?player=mse")
        first, last = watching.play_through(browser, 2)
        assert last["frames"] > first["frames"] + 30, f"{first} {last}"
        assert "AV1 (av01." in browser.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize(("browser", "audio"), [
    ("chromium", "mp2"), ("chromium", "ac3"), ("firefox", "ac3"), pytest.param("firefox", "mp2", marks=pytest.mark.long),
], indirect=["browser"])
def test_audio_that_browsers_do_not_know_is_heard_as_aac(browser, audio, weir):
    """MP2 is decoded; AC-3 has AAC beside it, without a setting. The page finds it."""
    name, film = f"{audio}-{browser.name}", transport.film("loop", "-c:a", audio)
    publisher = publishers.Publisher([
        tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-stream_loop", "-1", "-i", str(film), "-c", "copy", "-f", "mpegts", "-method", "POST",
        f"{weir.web}/live/{name}/ingest"])
    try:
        weir.wait_state(name, "live", seconds=20)
        watching.watch(browser, weir, name)
        first, last = watching.play_through(browser, 2)
        assert last["frames"] > first["frames"] + 30 and last["error"] is None, f"{first} {last}"
        if browser.name == "chromium":
            assert last["audioBytes"] > first["audioBytes"] + 1000, f"{first} {last}"
        else:
            assert browser.evaluate(watching.FIREFOX_LOUDNESS) > 0.05
        assert "AAC (mp4a.40.2)" in browser.evaluate(watching.DETAILS)["Codecs"]
        assert browser.errors == []
    finally:
        publisher.kill()
    watching.leave(browser)
