"""The live window: seeking, times of day, catching up, low latency, keys."""

import re
import signal
import statistics
import struct
import time
import urllib.parse

import pytest

import watching
from harness import publishers

MSE = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
WAYS = pytest.mark.parametrize(
    ("browser", "way"), [("chromium", "mse"), ("chromium", "hls"), ("firefox", "mse")], indirect=["browser"])
BEHIND = "document.querySelector('#live').dataset.edge === 'behind'"
LIVE = "document.querySelector('#live').dataset.edge === 'live'"


def playlist_url(server):
    """The URL of the demo stream's media playlist."""
    lines = server.get("/live/demo/index.m3u8").good().body.decode().splitlines()
    return f"{server.web}/live/demo/" + next(line for line in lines if line and not line.startswith("#"))


def playlist_of(server):
    return server.get(playlist_url(server)).good().body.decode()


@pytest.fixture
def grown(demo):
    """The demo stream, with enough of a window to seek in."""
    demo.wait(lambda: demo.stream("demo")["ageSeconds"] > 20, 30, "a stream that is twenty seconds old")
    return demo


@WAYS
def test_seeks_back_in_the_window_and_returns_to_the_live_edge(browser, way, grown):
    watching.watch(browser, grown, "demo", f"?player={way}")
    browser.wait("!document.querySelector('#seek-row').hidden && !document.querySelector('#position').hidden")
    place = watching.seek_to(browser, 12)
    browser.wait(f"document.querySelector('#video').currentTime > {place} + 1")
    browser.wait(BEHIND)
    shown = browser.evaluate(watching.SHOWN_TIME)
    # A stall meanwhile only adds to it.
    assert 10 < (shown["now"] - shown["read"]) / 1000 < 20, f"{shown}"
    time.sleep(1)
    assert 9 < watching.distance(browser) < 18
    assert browser.evaluate(watching.DETAILS)["Speed"] == "1.00×", "who has sought back is not hurried"
    then = watching.state(browser)["time"]
    browser.wait(f"document.querySelector('#video').currentTime > {then} + 4")
    browser.evaluate("document.querySelector('#live').click()")
    browser.wait(LIVE)
    browser.wait("Number.parseFloat(document.querySelector('#distance').textContent.slice(1)) < 3")
    shown = browser.evaluate(watching.SHOWN_TIME)
    assert (shown["now"] - shown["read"]) / 1000 < 5, f"{shown}"
    assert browser.errors == []
    watching.leave(browser)


@MSE
def test_shows_the_time_of_day_of_the_frame(browser, grown):
    watching.watch(browser, grown, "demo", "?player=mse")
    browser.wait("!document.querySelector('#position').hidden")
    for behind in (0, 9, 14):
        if behind:
            place = watching.seek_to(browser, behind)
            browser.wait(f"document.querySelector('#video').currentTime > {place} + 0.5")
        shown = browser.evaluate(watching.SHOWN_TIME)
        assert abs(shown["position"] - shown["read"]) < 500, f"{behind} s back: {shown}"
        seconds = browser.evaluate(f"new Date({shown['position']}).getSeconds()")
        assert shown["text"].endswith(f":{seconds:02}")
    watching.leave(browser)


def test_the_pointer_over_the_bar_tells_the_time_there(chromium, grown):
    watching.watch(chromium, grown, "demo", "?player=mse")
    chromium.wait("!document.querySelector('#seek-row').hidden && !document.querySelector('#position').hidden")
    box = chromium.evaluate("(() => { const r = document.querySelector('#seek').getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")
    # Read at the moment at which the page writes it, with the position of that moment: time advances, and players jump.
    chromium.evaluate("""(() => {
      const bar = document.querySelector("#seek"), bubble = document.querySelector("#seek-bubble");
      new MutationObserver(() => {
        document.querySelector("#video").dispatchEvent(new Event("timeupdate"));
        const position = Date.parse(document.querySelector("#position").dateTime);
        const middle = (Number(bar.min) + Number(bar.max)) / 2;
        const time = document.querySelector("#video").currentTime;
        const bubbleTime = Date.parse(bubble.dataset.date);
        window.told = { bubble: bubbleTime, expected: position + (middle - time) * 1000, text: bubble.textContent };
      }).observe(bubble, { attributes: true, attributeFilter: ["data-date"] });
    })()""")
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=box[0] + box[2] / 2, y=box[1] + box[3] / 2)
    chromium.wait("!document.querySelector('#seek-bubble').hidden && window.told")
    told = chromium.evaluate("window.told")
    assert abs(told["bubble"] - told["expected"]) < 200, f"{told}"
    assert ":" in told["text"] and "−0:" in told["text"]
    chromium.call("Input.dispatchMouseEvent", type="mouseMoved", x=5, y=5)
    chromium.wait("document.querySelector('#seek-bubble').hidden")
    watching.leave(chromium)


@WAYS
def test_glass_to_glass_is_within_a_second(browser, way, grown, record_property):
    watching.watch(browser, grown, "demo", f"?player={way}")
    time.sleep(5)  # by then, a slow start on a busy machine has mostly been caught up
    best = None
    for _ in range(8):  # later attempts allow for delays of a busy machine
        delays = browser.evaluate(watching.GLASS_TO_GLASS)
        assert len(delays) > 10, f"the burned-in time could be read {len(delays)} times"
        median, late = statistics.median(delays), delays[int(len(delays) * 0.95)]
        if best is None or median < best[0]:
            best = (median, late, len(delays))
        if median <= 0.9:
            break
    record_property("figure", f"glass to glass, {browser.name}, {way}: median {best[0]:.2f} s, p95 {best[1]:.2f} s ({best[2]} frames)")
    details = browser.evaluate(watching.DETAILS)
    latency = float(details["Latency"].split()[0])
    assert abs(latency - best[0]) < 0.6, f"the overlay says {latency}, the frames say {best[0]}"
    assert best[0] <= 1.0, f"median {best[0]}"
    assert browser.errors == []
    watching.leave(browser)


@pytest.mark.parametrize("way", ["mse", "hls"])
def test_catches_up_by_speed_after_a_stall(chromium, way, weir):
    name = f"stalled-{way}"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=12)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(chromium, weir, name, f"?player={way}")
        # Only a viewer close to the edge stalls when no media comes for this long.
        weir.wait(lambda: float(chromium.evaluate(watching.DETAILS)["Latency"].split()[0]) < 1.4, 60, "a viewer at the edge")
        chromium.evaluate("(window.jumps = 0, document.querySelector('#video').addEventListener('seeking', () => window.jumps += 1))")
        weir.send(signal.SIGSTOP)
        time.sleep(1.8)
        weir.send(signal.SIGCONT)
        chromium.wait("document.querySelector('#video').playbackRate > 1")
        late = chromium.evaluate(watching.DETAILS)
        assert int(late["Stalls"]) >= 1
        first = float(late["Latency"].split()[0])
        assert late["Speed"] in ("1.03×", "1.08×")
        chromium.wait("document.querySelector('#video').playbackRate === 1", 60)
        caught = chromium.evaluate(watching.DETAILS)
        last, stalls = float(caught["Latency"].split()[0]), int(caught["Stalls"]) - int(late["Stalls"])
        # The page stays farther behind by this much for each further stall, as on a machine that is held up.
        assert last < first - 0.5 + 0.4 * stalls, f"{first} s, then {last} s and {stalls} stalls"
        assert chromium.evaluate("window.jumps") == 0
    finally:
        weir.send(signal.SIGCONT)
        publisher.kill()
    watching.leave(chromium)


@pytest.mark.parametrize(("browser", "way"), [("chromium", "hls"), ("firefox", "mse")], indirect=["browser"])
def test_plays_over_a_change_of_video_and_audio_from_the_window(browser, way, weir):
    name = f"changed-{browser.name}-{way}"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, f"?player={way}")
        time.sleep(8)
    finally:
        publisher.kill()
    watching.wait_phase(browser, "reconnecting")
    publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=2)
    try:
        browser.wait("document.querySelector('#video').videoWidth === 256", 40)
        time.sleep(4)
    finally:
        publisher.kill()
    publisher = publishers.ffmpeg("audio-441", f"{weir.rtmp}/live/{name}", loop=10)
    try:
        # From the window, the player plays over both changes.
        browser.wait("document.querySelector('#video').videoWidth === 320", 40)
        behind = browser.evaluate("Number(document.querySelector('#seek').max) - Number(document.querySelector('#seek').min)")
        place = watching.seek_to(browser, behind - 1)
        for width in (320, 256, 320):
            browser.wait(f"document.querySelector('#video').videoWidth === {width} && !document.querySelector('#video').seeking", 40)
        then = watching.state(browser)["time"]
        assert then > place
        browser.wait(f"document.querySelector('#video').currentTime > {then} + 2")
        assert watching.state(browser)["error"] is None
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize(
    ("browser", "way"), [("chromium", "mse"), ("chromium", "hls"), ("firefox", "hls")], indirect=["browser"])
def test_goes_on_when_a_lost_publisher_returns_with_other_codecs(browser, way, weir):
    name = f"codecs-{browser.name}-{way}"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=5)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, f"?player={way}")
        assert "H.264" in browser.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.wait_phase(browser, "reconnecting")
    publisher = publishers.ffmpeg("av1-opus", f"{weir.rtmp}/live/{name}", loop=5)
    try:
        then = watching.wait_phase(browser, "playing")["time"]
        browser.wait(f"document.querySelector('#video').currentTime > {then} + 2")
        codecs = browser.evaluate(watching.DETAILS)["Codecs"]
        assert "AV1 (av01." in codecs and "Opus" in codecs
    finally:
        publisher.kill()
    watching.leave(browser)


def later(media, seconds, timescales):
    """Fragments with all their decode times moved (§8.8.12); `timescales` by track id."""
    media = bytearray(media)
    at = 0
    while at + 8 <= len(media):
        size, kind = struct.unpack_from(">I4s", media, at)
        if kind == b"moof":
            track = 0
            for match in re.finditer(rb"tfhd|tfdt", bytes(media[at:at + size])):
                place = at + match.start() + 8
                if match[0] == b"tfhd":
                    track = struct.unpack_from(">I", media, place)[0]
                else:
                    ticks = struct.unpack_from(">Q", media, place)[0]
                    struct.pack_into(">Q", media, place, ticks + seconds * timescales[track])
        at += size
    return bytes(media)


def test_another_time_axis_after_a_discontinuity_is_laid_on_the_one_before(chromium, grown):
    # weir's own axis continues; a playlist may differ (RFC 8216bis, 4.4.4.3). From this segment on, times are an hour later.
    changed = int(re.findall(r"^(\d+)\.m4s$", playlist_of(grown), re.M)[-1]) + 2
    init = grown.get(urllib.parse.urljoin(playlist_url(grown), "init-1.mp4")).good().body
    timescales = {
        number: struct.unpack_from(">I", init, found.start() + (24 if init[found.start() + 4] else 16))[0]
        for number, found in enumerate(re.finditer(b"mdhd", init), 1)}

    def answer(url):
        body = grown.get(url).good().body
        name = urllib.parse.urlsplit(url).path.rsplit("/", 1)[1]
        if name == "index.m3u8":
            text = body.decode()
            listed = re.search(rf'^(#EXT-X-PART:.*"{changed}\.0\.m4s"|{changed}\.m4s$)', text, re.M)
            if listed is None:
                return text
            line = text.rfind("#EXT-X-PROGRAM-DATE-TIME", 0, listed.start())
            return text[:line] + "#EXT-X-DISCONTINUITY\n" + text[line:]
        return later(body, 3600, timescales) if name[0].isdigit() and int(name.split(".")[0]) >= changed else body

    with chromium.answering(f"{grown.web}/live/demo/*/*", answer):
        watching.watch(chromium, grown, "demo", "?player=hls")
        then = watching.state(chromium)["time"]
        chromium.wait(f"document.querySelector('#video').currentTime > {then} + 10")
        assert watching.state(chromium)["time"] < then + 60
        chromium.wait(f"performance.getEntriesByType('resource').some((e) => e.name.includes('/{changed + 1}.'))")
        assert chromium.evaluate(watching.DETAILS)["Stalls"] in ("0", "1", "2")
        watching.leave(chromium)


def test_a_gap_in_the_playlist_is_passed_over(chromium, grown):
    numbers = [int(n) for n in re.findall(r"^(\d+)\.m4s$", playlist_of(grown), re.M)]
    gap = numbers[-4]

    def answer(url):
        text = grown.get(url).good().body.decode()
        return re.sub(rf"^(#EXTINF:[0-9.]+,\n{gap}\.m4s)$", r"#EXT-X-GAP\n\1", text, flags=re.M)

    with chromium.answering(f"{grown.web}/live/demo/*/index.m3u8*", answer):
        watching.watch(chromium, grown, "demo", "?player=mse")
        chromium.wait("!document.querySelector('#seek-row').hidden && !document.querySelector('#position').hidden")
        date = re.findall(rf"DATE-TIME:(\S+)\n(?:#EXT-X-PART.*\n)*#EXTINF:[0-9.]+,\n{gap}\.m4s", playlist_of(grown))[0]
        place = chromium.evaluate(
            "document.querySelector('#video').currentTime + (Date.parse(%r) - Date.parse(document.querySelector('#position').dateTime)) / 1000" % date)
        bar_end = chromium.evaluate("Number(document.querySelector('#seek').max)")
        watching.seek_to(chromium, bar_end - place + 1)
        chromium.wait(f"document.querySelector('#video').currentTime > {place} + 2.5")
        ranges = chromium.evaluate("(() => { const b = document.querySelector('#video').buffered; return [...Array(b.length)].map((_, n) => [b.start(n), b.end(n)]); })()")
        assert not any(start < place + 0.5 and place + 1.5 < end for start, end in ranges), f"{ranges} has the gap at {place}"
        asked = chromium.evaluate("performance.getEntriesByType('resource').map((e) => e.name)")
        assert not [n for n in asked if n.endswith(f"/{gap}.m4s")]
        watching.leave(chromium)


@MSE
def test_goes_on_by_parts_when_a_lost_publisher_returns(browser, weir):
    name = f"parts-{browser.name}"
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{name}", loop=5)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, "?player=hls")
    finally:
        publisher.kill()
    assert watching.wait_phase(browser, "reconnecting")["message"] == "Reconnecting"
    publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=12)
    try:
        browser.wait("document.querySelector('#video').videoWidth === 256", 40)
        then = watching.wait_phase(browser, "playing")["time"]
        browser.wait(f"document.querySelector('#video').currentTime > {then} + 2")
        publisher.interrupt()
        assert watching.wait_phase(browser, "ended")["message"] == "The stream has ended"
    finally:
        publisher.kill()
    watching.leave(browser)


@MSE
def test_parts_are_fetched_as_they_are_made(browser, grown):
    watching.watch(browser, grown, "demo", "?player=hls")
    time.sleep(4)
    names = browser.evaluate("(performance.clearResourceTimings(), new Promise((done) => setTimeout(() =>"
                             " done(performance.getEntriesByType('resource').map((e) => e.name)), 4000)))")
    parts = [n for n in names if n.split("?")[0].endswith(".m4s") and n.rsplit("/", 1)[1].count(".") == 2]
    reloads = [n for n in names if "_HLS_msn=" in n and "_HLS_part=" in n]
    # 20 of each in 4 s at 200 ms. More would be requests without a pause.
    assert 8 <= len(parts) <= 30, f"{parts}"
    assert 8 <= len(reloads) <= 30, f"{reloads}"
    assert all("_HLS_skip=" in n for n in reloads[-3:])
    assert browser.evaluate(watching.DETAILS)["Player"] == "Media Source, HLS parts"
    watching.leave(browser)


@pytest.mark.parametrize("way", ["mse", "hls"])
def test_plays_separate_audio_and_video(chromium, way, start):
    server = start("--test-pattern", "demo", "--hls-layout", "separate")
    server.wait_state("demo", "live", seconds=30)
    server.wait(lambda: server.stream("demo")["ageSeconds"] > 14, 30, "a window to seek in")
    watching.watch(chromium, server, "demo", f"?player={way}")
    chromium.wait("!document.querySelector('#position').hidden")
    place = watching.seek_to(chromium, 10)
    chromium.wait(f"document.querySelector('#video').currentTime > {place} + 2")
    before = watching.state(chromium)
    chromium.wait(f"document.querySelector('#video').currentTime > {before['time']} + 2")
    assert watching.state(chromium)["audioBytes"] > before["audioBytes"]
    shown = chromium.evaluate(watching.SHOWN_TIME)
    assert abs(shown["position"] - shown["read"]) < 500, f"{shown}"
    chromium.evaluate("document.querySelector('#live').click()")
    chromium.wait(LIVE)
    # A viewer that has stalled meanwhile catches up.
    for _ in range(20):
        shown = chromium.evaluate(watching.SHOWN_TIME)
        if shown["now"] - shown["read"] < 3000:
            break
        time.sleep(2)
    assert (shown["now"] - shown["read"]) / 1000 < 3, f"{shown}"
    assert chromium.errors == []
    watching.leave(chromium)


#: From here on `steps` has each seek, in seconds of media: from the position before it to its target.
COUNT_STEPS = """(() => {
  const video = document.querySelector("#video");
  window.steps = [];
  let before = 0;
  document.addEventListener("keydown", () => { before = video.currentTime; }, { capture: true });
  video.addEventListener("seeking", () => window.steps.push(video.currentTime - before));
})()"""


def test_the_player_obeys_its_keys(chromium, grown):
    watching.watch(chromium, grown, "demo", "?player=mse")
    chromium.wait("!document.querySelector('#seek-row').hidden")
    time.sleep(1)
    chromium.evaluate(COUNT_STEPS)

    def steps(key, code, seconds):
        # The distance of a seek is exact. The distance to the edge afterwards also depends on the load of the machine.
        chromium.evaluate("window.steps.length = 0")
        chromium.press(key, code)
        chromium.wait("window.steps.length > 0 && !document.querySelector('#video').seeking")
        assert abs(chromium.evaluate("window.steps[0]") - seconds) < 0.3, chromium.evaluate("window.steps")

    steps("j", "KeyJ", -10)
    chromium.wait(BEHIND)
    steps("ArrowRight", "ArrowRight", 5)
    chromium.wait(BEHIND)
    steps("ArrowLeft", "ArrowLeft", -5)
    chromium.wait(BEHIND)
    chromium.press("L", "KeyL", modifiers=8)
    chromium.wait(LIVE)
    chromium.evaluate("document.querySelector('#seek').focus()")
    chromium.press("Home", "Home")
    chromium.wait("document.querySelector('#video').currentTime - Number(document.querySelector('#seek').min) < 4")
    chromium.wait(BEHIND)
    chromium.press("End", "End")
    chromium.wait(LIVE)
    chromium.press("?", "Slash", modifiers=8)
    chromium.wait("document.querySelector('#help').open")
    chromium.press("Escape", "Escape")
    chromium.wait("!document.querySelector('#help').open")
    chromium.press("f", "KeyF")
    chromium.wait("document.fullscreenElement?.id === 'player'")
    chromium.press("f", "KeyF")
    chromium.wait("document.fullscreenElement === null")
    assert chromium.errors == []
    watching.leave(chromium)


def test_after_a_long_pause_the_video_goes_on_where_it_stood(chromium, grown):
    watching.watch(chromium, grown, "demo", "?player=mse")
    chromium.press("k", "KeyK")
    chromium.wait("document.querySelector('#video').paused")
    place = watching.state(chromium)["time"]
    paused_at = time.monotonic()
    time.sleep(6)
    chromium.press("k", "KeyK")
    paused = time.monotonic() - paused_at
    chromium.wait(f"document.querySelector('#video').currentTime > {place}")
    assert watching.state(chromium)["time"] < place + 2
    chromium.wait(BEHIND)
    time.sleep(1)
    assert paused - 1 < watching.distance(chromium) < paused + 6
    watching.leave(chromium)


def test_captions_are_offered_only_where_there_are_any(chromium, grown):
    watching.watch(chromium, grown, "demo", "?player=mse")
    assert chromium.evaluate("document.querySelector('#captions').hidden")
    chromium.evaluate("document.querySelector('#video').addTextTrack('captions', 'English', 'en') && null")
    chromium.wait("!document.querySelector('#captions').hidden")
    assert chromium.evaluate("[...document.querySelector('#captions').options].map((o) => o.text)") == ["No captions", "English"]
    chromium.press("c", "KeyC")
    chromium.wait("document.querySelector('#video').textTracks[0].mode === 'showing'")
    chromium.press("c", "KeyC")
    chromium.wait("document.querySelector('#video').textTracks[0].mode === 'disabled'")
    watching.leave(chromium)


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_all_controls_lie_within_the_screen(chromium, width, grown):
    chromium.viewport(width, 700)
    try:
        watching.watch(chromium, grown, "demo", "?player=mse")
        chromium.wait("!document.querySelector('#seek-row').hidden")
        outside = chromium.evaluate("""[...document.querySelectorAll("#controls button, #controls input, #controls time")]
          .filter((e) => e.checkVisibility()).filter((e) => {
            const r = e.getBoundingClientRect(), all = document.querySelector("#stage").getBoundingClientRect();
            return r.left < all.left || r.right > all.right + 0.5 || r.width < 1;
          }).map((e) => e.id)""")
        assert outside == []
        assert chromium.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
        small = chromium.evaluate("""[...document.querySelectorAll("#controls button")].filter((e) => e.checkVisibility())
          .filter((e) => Math.min(e.offsetWidth, e.offsetHeight) < 24).map((e) => e.id)""")
        assert small == [], "smaller than WCAG 2.2, 2.5.8 allows"
    finally:
        watching.leave(chromium)
        chromium.viewport(1280, 900)
