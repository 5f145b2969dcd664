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
#: Of a stream of which viewers may go back by ten seconds and a bit.
GROWN_SECONDS = 13
#: By eight seconds and a bit.
GROWN_LESS_SECONDS = 11
BEHIND = "document.querySelector('#live').dataset.edge === 'behind'"
LIVE = "document.querySelector('#live').dataset.edge === 'live'"


def playlist_url(server):
    """The URL of the demo stream's media playlist."""
    lines = server.get("/live/demo/index.m3u8").good().body.decode().splitlines()
    return f"{server.web}/live/demo/" + next(line for line in lines if line and not line.startswith("#"))


def playlist_of(server):
    return server.get(playlist_url(server)).good().body.decode()


def wait_grown(server, seconds=GROWN_SECONDS):
    server.wait(lambda: server.stream("demo")["ageSeconds"] > seconds, 40, "a window to seek in")
    return server


@pytest.fixture(scope="module")
def grown(demo):
    """The demo stream, with enough of a window to seek in."""
    return wait_grown(demo)


@pytest.fixture(scope="module")
def pattern(start_shared):
    """The test pattern, whose frames have the time of day burned in."""
    server = start_shared("--test-pattern", "demo", "--no-record")
    server.wait_state("demo", "live", seconds=30)
    return server


@pytest.fixture(scope="module")
def dated(demo, pattern):
    """The test pattern, with as much. The window of the other stream grows meanwhile."""
    return wait_grown(pattern)


@pytest.fixture(scope="module")
def weir(start_shared):
    """Streams begin soon here."""
    return start_shared("--no-record", "--segment-duration", "500ms")


@WAYS
def test_seeks_back_in_the_window_and_returns_to_the_live_edge(browser, way, dated):
    watching.watch(browser, dated, "demo", f"?player={way}")
    browser.wait("!document.querySelector('#seek-row').hidden && !document.querySelector('#position').hidden")
    place = watching.seek_to(browser, 10)
    browser.wait(f"document.querySelector('#video').currentTime > {place} + 1")
    browser.wait(BEHIND)
    shown = browser.evaluate(watching.SHOWN_TIME)
    # A stall meanwhile only adds to it.
    assert 8 < (shown["now"] - shown["read"]) / 1000 < 18, f"{shown}"
    dated.wait(lambda: 7 < watching.distance(browser) < 16, 10, "the distance is told")
    assert browser.evaluate(watching.DETAILS)["Speed"] == "1.00×", "who has sought back is not hurried"
    watching.play_on(browser, 1)
    browser.evaluate("document.querySelector('#live').click()")
    browser.wait(LIVE)
    browser.wait("Number.parseFloat(document.querySelector('#distance').textContent.slice(1)) < 3")
    shown = browser.evaluate(watching.SHOWN_TIME)
    assert (shown["now"] - shown["read"]) / 1000 < 5, f"{shown}"
    assert browser.errors == []
    watching.leave(browser)


@MSE
def test_shows_the_time_of_day_of_the_frame(browser, dated):
    watching.watch(browser, dated, "demo", "?player=mse")
    browser.wait("!document.querySelector('#position').hidden")
    for behind in (0, 5, 10):
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


@pytest.fixture
def caught_up(browser, way, pattern):
    """The browser, which plays the test pattern. What its start was late is caught up: less for a page that is opened again, as all
    that it needs is there."""
    for _ in range(2):
        watching.watch(browser, pattern, "demo", f"?player={way}")
    time.sleep(3)  # real time: whether a start was late is seen by then
    browser.wait("document.querySelector('#video').playbackRate <= 1")
    return browser


@pytest.mark.quiet
@pytest.mark.parametrize(("browser", "way"), [
    ("chromium", "mse"), pytest.param("chromium", "hls", marks=pytest.mark.long), pytest.param("firefox", "mse", marks=pytest.mark.long),
], indirect=["browser"])
def test_glass_to_glass_is_within_a_second(caught_up, way, record_property):
    browser = caught_up
    delays = browser.evaluate(watching.GLASS_TO_GLASS)
    assert len(delays) > 10, f"the burned-in time could be read {len(delays)} times"
    median, late = statistics.median(delays), delays[int(len(delays) * 0.95)]
    record_property("figure", f"glass to glass, {browser.name}, {way}: median {median:.2f} s, p95 {late:.2f} s ({len(delays)} frames)")
    told = watching.latency(browser)
    assert abs(told - median) < 0.6, f"the overlay says {told}, the frames say {median}"
    assert median <= 1.0, f"median {median}"
    assert browser.errors == []
    watching.leave(browser)


@pytest.mark.quiet
@pytest.mark.parametrize("way", ["mse", pytest.param("hls", marks=pytest.mark.long)])
def test_catches_up_by_speed_after_a_stall(chromium, way, weir):
    """That the whole of it is caught up, and then no more, is a test without a browser: Tests/WebTests/live-edge.test.mjs."""
    name = f"stalled-{way}"
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(chromium, weir, name, f"?player={way}")
        # Only a viewer close to the edge stalls when no media comes for this long.
        weir.wait(lambda: watching.latency(chromium) < 1.4, 60, "a viewer at the edge")
        stalls = int(chromium.evaluate(watching.DETAILS)["Stalls"])
        chromium.evaluate("(window.jumps = 0, document.querySelector('#video').addEventListener('seeking', () => window.jumps += 1))")
        weir.send(signal.SIGSTOP)
        time.sleep(1.8)  # real time: the stall itself
        weir.send(signal.SIGCONT)
        chromium.wait("document.querySelector('#video').playbackRate > 1")
        late = chromium.evaluate(watching.DETAILS)
        first = watching.latency(chromium)
        assert int(late["Stalls"]) == stalls + 1
        assert late["Speed"] in ("1.03×", "1.08×")
        weir.wait(lambda: watching.latency(chromium) < first - 0.2, 15, f"a viewer who is less late than {first} s")
        assert int(chromium.evaluate(watching.DETAILS)["Stalls"]) == stalls + 1
        assert chromium.evaluate("window.jumps") == 0
    finally:
        weir.send(signal.SIGCONT)
        publisher.kill()
    watching.leave(chromium)


#: From here on `sizes` has each size that is shown, and `sought` each seek that is done, with the seconds of media then; `told` has
#: what else happens, and when.
COUNT_SIZES = """(() => {
  const video = document.querySelector("#video");
  Object.assign(window, { sizes: [], sought: [], told: [] });
  for (const kind of ["seeking", "seeked", "waiting", "playing", "resize", "emptied", "error"]) {
    video.addEventListener(kind, () => told.push([kind, video.currentTime, performance.now() / 1000]));
  }
  video.addEventListener("resize", () => { if (video.videoWidth > 0) sizes.push({ width: video.videoWidth, time: video.currentTime }); });
  video.addEventListener("seeked", () => sought.push(video.currentTime));
})()"""

#: What is told of a seek that is not done.
SHOWN = """(() => {
  const video = document.querySelector("#video");
  return { sizes, sought, told, now: performance.now() / 1000, time: video.currentTime, seeking: video.seeking, ready: video.readyState, paused: video.paused,
    ...Object.fromEntries(["buffered", "seekable"].map((kind) => [
      kind, [...Array(video[kind].length).keys()].map((at) => [video[kind].start(at), video[kind].end(at)])])) };
})()"""


#: The player has shown the second publication, and shows the third one.
PLAYED_OVER = "sizes.some(({ width }) => width === 256) && sizes.at(-1).width === 320"


@pytest.fixture
def changed(request, browser, weir):
    """A player that has followed three publications of a stream, with other sizes and other audio: a time of the first one that it
    has played, far enough from the live edge."""
    way = request.node.callspec.params["way"]
    name = f"changed-{browser.name}-{way}"
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, f"?player={way}")
        browser.evaluate(COUNT_SIZES)
        watching.play_on(browser, 1.5)
        played = watching.state(browser)["time"]
    finally:
        publisher.kill()
    weir.wait_state(name, "reconnecting", seconds=40)
    publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        browser.wait("document.querySelector('#video').videoWidth === 256", 40)
        watching.play_on(browser, 1)
    finally:
        publisher.kill()
    publisher = publishers.ffmpeg("audio-441", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        browser.wait(PLAYED_OVER, 40)
        # A bar is there once the window is long enough. Close to its end, a seek leads to the live edge: as close as the longest
        # time between two arrivals of late, and some publishers needed seconds to begin.
        behind = f"Number(document.querySelector('#seek').max) - {played}"
        browser.wait(f"!document.querySelector('#seek-row').hidden && {behind} > 8", 40)
        yield played
    finally:
        publisher.kill()
    watching.leave(browser)


@pytest.mark.parametrize(("browser", "way"), [("chromium", "hls"), ("firefox", "mse")], indirect=["browser"])
def test_plays_over_a_change_of_video_and_audio_from_the_window(browser, way, changed):
    """From a place in the first publication."""
    browser.evaluate("void (sizes.length = sought.length = told.length = 0)")
    # In seconds before the end of the bar as it is at that moment.
    place = watching.seek_to(browser, f"(Number(bar.max) - {changed})")
    assert abs(place - changed) < 0.1, (place, changed)
    browser.wait(f"sought.some((time) => time < {changed} + 0.5)", 40, SHOWN)
    # The size before the seek is that of the first publication, too: browsers may tell it again.
    browser.wait(PLAYED_OVER, 40)
    widths = [one["width"] for one in browser.evaluate("sizes")]
    changes = [width for at, width in enumerate(widths) if width != ([320, *widths])[at]]
    assert changes == [256, 320], browser.evaluate("[sizes, sought]")
    watching.play_on(browser, 1)
    assert watching.state(browser)["error"] is None


@pytest.mark.parametrize(
    ("browser", "way"), [("chromium", "mse"), ("chromium", "hls"), ("firefox", "hls")], indirect=["browser"])
def test_goes_on_when_a_lost_publisher_returns_with_other_codecs(browser, way, weir):
    name = f"codecs-{browser.name}-{way}"
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        weir.wait_state(name, "live", seconds=40)
        watching.watch(browser, weir, name, f"?player={way}")
        assert "H.264" in browser.evaluate(watching.DETAILS)["Codecs"]
    finally:
        publisher.kill()
    watching.wait_phase(browser, "reconnecting")
    publisher = publishers.ffmpeg("av1-opus", f"{weir.rtmp}/live/{name}", loop=-1)
    try:
        watching.wait_phase(browser, "playing")
        watching.play_on(browser, 1)
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
        # The change is at most two segments and a bit ahead.
        then = watching.play_on(chromium, 6)["time"]
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


@pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
def test_parts_are_fetched_as_they_are_made(browser, grown):
    watching.watch(browser, grown, "demo", "?player=hls")
    watching.play_on(browser, 1)
    browser.evaluate("void performance.clearResourceTimings()")
    asked = browser.wait("""(() => {
      const some = performance.getEntriesByType("resource").map(({ name, startTime }) => [name, startTime]);
      return some.length > 30 && some;
    })()""")
    parts = [name for name, _ in asked if name.split("?")[0].endswith(".m4s") and name.rsplit("/", 1)[1].count(".") == 2]
    reloads = [name for name, _ in asked if "_HLS_msn=" in name and "_HLS_part=" in name]
    # Five of each in a second, at 200 ms. More would be requests without a pause.
    seconds = (asked[-1][1] - asked[0][1]) / 1000
    assert 8 <= len(parts) <= 7.5 * seconds + 2, f"{parts} in {seconds} s"
    assert 8 <= len(reloads) <= 7.5 * seconds + 2, f"{reloads} in {seconds} s"
    assert len(set(parts)) == len(parts), "each is fetched once"
    assert all("_HLS_skip=" in n for n in reloads[-3:])
    assert browser.evaluate(watching.DETAILS)["Player"] == "Media Source, HLS parts"
    watching.leave(browser)


@pytest.fixture(scope="module")
def separate(start_shared):
    server = start_shared("--test-pattern", "demo", "--hls-layout", "separate", "--no-record")
    server.wait_state("demo", "live", seconds=30)
    return wait_grown(server, GROWN_LESS_SECONDS)


@pytest.mark.parametrize("way", ["mse", "hls"])
def test_plays_separate_audio_and_video(chromium, way, separate):
    watching.watch(chromium, separate, "demo", f"?player={way}")
    chromium.wait("!document.querySelector('#position').hidden")
    place = watching.seek_to(chromium, 8)
    chromium.wait(f"document.querySelector('#video').currentTime > {place} + 1")
    before = watching.play_on(chromium, 2)
    assert watching.state(chromium)["audioBytes"] > before["audioBytes"]
    shown = chromium.evaluate(watching.SHOWN_TIME)
    assert abs(shown["position"] - shown["read"]) < 500, f"{shown}"
    chromium.evaluate("document.querySelector('#live').click()")
    chromium.wait(LIVE)

    def is_late() -> bool:
        shown = chromium.evaluate(watching.SHOWN_TIME)
        return shown["now"] - shown["read"] >= 8000

    # A viewer that has stalled meanwhile catches up. From glass to glass it is a second where nothing else runs (above).
    separate.wait(lambda: not is_late(), 60, "less than eight seconds from the frame to the screen")
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
    watching.play_on(chromium, 0.5)
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
    time.sleep(5)  # real time: the pause itself, longer than what is caught up
    chromium.evaluate("""document.querySelector('#video').addEventListener(
      'timeupdate', (event) => { window.resumedAt = event.target.currentTime; }, { once: true })""")
    chromium.press("k", "KeyK")
    paused = time.monotonic() - paused_at
    chromium.wait(f"document.querySelector('#video').currentTime > {place}")
    chromium.wait("window.resumedAt !== undefined")
    assert chromium.evaluate("window.resumedAt") < place + 2
    chromium.wait(BEHIND)
    grown.wait(lambda: paused - 1 < watching.distance(chromium) < paused + 6, 10, f"a distance of {paused} s is told")
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
