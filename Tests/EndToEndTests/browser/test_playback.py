"""The watch page plays the live stream, in each browser and with each engine."""

import time

import pytest

import watching
from harness import publishers, tools

WAYS = [("chromium", "native"), ("chromium", "mse"), ("firefox", "mse"), ("chromium", "hls"), ("firefox", "hls")]
PLAYERS = {"native": "native HLS", "mse": "Media Source, stream.mp4", "hls": "Media Source, HLS parts"}
SECONDS = 10


@pytest.mark.parametrize(("browser", "way"), WAYS, indirect=["browser"], ids=["-".join(way) for way in WAYS])
def test_plays_ten_seconds_with_video_and_audio(browser, way, demo):
    first = watching.watch(browser, demo, "demo", f"?player={way}")
    deadline = time.monotonic() + 3 * SECONDS
    last = first
    while last["time"] < first["time"] + SECONDS and time.monotonic() < deadline:
        time.sleep(0.5)
        last = watching.state(browser)
    assert last["time"] >= first["time"] + SECONDS, f"{first} {last} {browser.errors}"
    # The stream has 30 frames per second. On a busy machine the test source and the browser drop some.
    assert last["frames"] - last["dropped"] - first["frames"] >= SECONDS * 10, f"{first} {last}"
    assert (last["width"], last["height"]) == (1280, 720)
    assert last["muted"] and not last["paused"] and last["error"] is None
    if browser.name == "chromium":
        assert last["audioBytes"] > first["audioBytes"] + 1000, f"{first} {last}"
    else:
        assert browser.evaluate(watching.FIREFOX_LOUDNESS) > 0.05, "the beep of each second is not heard"
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
    browser.evaluate(watching.DETAILS)
    browser.wait(
        "[...document.querySelectorAll('#figures > div')].some((row) => row.querySelector('dt').textContent === 'Latency'"
        " && /^[0-9.,]+ s$/.test(row.querySelector('dd').textContent))", 10)
    latency = float(browser.evaluate(watching.DETAILS)["Latency"].split()[0])
    assert 0 < latency < most
    watching.leave(browser)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_waits_for_a_stream_plays_it_when_it_comes_and_says_when_it_has_ended(browser, weir):
    name = f"later-{browser.name}"
    browser.open(f"{weir.web}/watch/{name}?player=mse")
    assert watching.wait_phase(browser, "notStarted")["message"] == "Not started yet"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=3)
    try:
        playing = watching.wait_phase(browser, "playing")
        assert (playing["width"], playing["height"]) == (320, 180)
        publisher.interrupt()
        ended = watching.wait_phase(browser, "ended")
        assert ended["message"] == "The stream has ended"
        assert ended["badge"] == "Ended"
    finally:
        publisher.kill()
    second = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=6)
    try:
        watching.wait_phase(browser, "playing")
        browser.wait("document.querySelector('#video').videoWidth === 256")
        then = watching.state(browser)["time"]
        browser.wait(f"document.querySelector('#video').currentTime > {then} + 2")
    finally:
        second.kill()
    watching.leave(browser)


@pytest.mark.parametrize(("browser", "way"), WAYS, indirect=["browser"], ids=["-".join(way) for way in WAYS])
def test_goes_on_when_a_lost_publisher_returns_with_another_frame_size(browser, way, start):
    # On a busy machine a native player may be far behind. It must still find the stream waiting when it gets there.
    weir = start("--no-record", "--reconnect-window", "120s")
    name = f"returns-{browser.name}-{way}"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=5)
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
    publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=12)
    try:
        browser.wait("document.querySelector('#video').videoWidth === 256", 40)
        then = watching.wait_phase(browser, "playing")["time"]
        browser.wait(f"document.querySelector('#video').currentTime > {then} + 2")
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize("film", ["audio-only", "video-only"])
@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_plays_streams_of_one_track(browser, film, weir):
    name = f"{film}-{browser.name}"
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/{name}", loop=6)
    try:
        weir.wait_state(name, "live", seconds=40)
        first = watching.watch(browser, weir, name, "?player=mse")
        browser.wait(f"document.querySelector('#video').currentTime > {first['time']} + 3")
        assert browser.evaluate("document.querySelector('#audio-only').hidden") is (film == "video-only")
        assert browser.evaluate("document.querySelector('#unmute').hidden") is (film == "video-only")
        assert browser.errors == []
    finally:
        publisher.kill()
    watching.leave(browser)


def test_names_the_codec_that_chromium_cannot_play(chromium, weir):
    publisher = publishers.ffmpeg("hevc", f"{weir.rtmp}/live/hevc", loop=4)
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
    publisher = publishers.ffmpeg("hevc", f"{weir.rtmp}/live/hevc-firefox", loop=4)
    try:
        weir.wait_state("hevc-firefox", "live", seconds=40)
        first = watching.watch(firefox, weir, "hevc-firefox")
        firefox.wait(f"document.querySelector('#video').currentTime > {first['time']} + 3")
        assert watching.state(firefox)["frames"] > first["frames"] + 30
    finally:
        publisher.kill()
    watching.leave(firefox)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
def test_plays_av1_with_opus(browser, weir):
    name = f"av1-{browser.name}"
    publisher = publishers.ffmpeg("av1-opus", f"{weir.rtmp}/live/{name}", loop=4)
    try:
        weir.wait_state(name, "live", seconds=40)
        first = watching.watch(browser, weir, name, "?player=mse")
        browser.wait(f"document.querySelector('#video').currentTime > {first['time']} + 3")
        assert watching.state(browser)["frames"] > first["frames"] + 30
        assert "AV1 (av01." in browser.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
@pytest.mark.parametrize("audio", ["mp2", "ac3"])
def test_audio_that_browsers_do_not_know_is_heard_as_aac(browser, audio, weir, tmp_path):
    """MP2 is decoded; AC-3 has AAC beside it, without a setting. The page finds it."""
    name, film = f"{audio}-{browser.name}", tmp_path / "film.ts"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
              "sine=440:sample_rate=48000,volume=4", "-t", "30", "-c:v", "libx264", "-preset", "ultrafast", "-g", "60", "-c:a",
              audio, film)
    publisher = publishers.Publisher([
        tools.FFMPEG, "-v", "error", "-nostdin", "-re", "-i", str(film), "-c", "copy", "-f", "mpegts", "-method", "POST",
        f"{weir.web}/live/{name}/ingest"])
    try:
        weir.wait_state(name, "live", seconds=20)
        first = watching.watch(browser, weir, name)
        browser.wait(f"document.querySelector('#video').currentTime > {first['time']} + 4", 20)
        last = watching.state(browser)
        assert last["frames"] > first["frames"] + 30 and last["error"] is None
        if browser.name == "chromium":
            assert last["audioBytes"] > first["audioBytes"] + 1000, f"{first} {last}"
        else:
            assert browser.evaluate(watching.FIREFOX_LOUDNESS) > 0.05
        assert "AAC (mp4a.40.2)" in browser.evaluate(watching.DETAILS)["Codecs"]
        assert browser.errors == []
    finally:
        publisher.kill()
    watching.leave(browser)
