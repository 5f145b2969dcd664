"""The page that publishes, with the fake cameras and microphone of real browsers: what it sends is live and recorded."""

import json
import subprocess
import time

import pytest

import axe
import browsers
import watching
from harness import packets, relay, tools
from harness.programs import free_port
from test_keyboard_jobs import walk
from test_pages import OVERFLOW

#: The second of Chromium's fake cameras gives pictures that its own WebRTC does not send; the first and the third do.
CAMERAS = "--use-fake-device-for-media-stream=device-count=3,fps=30"
SMALL = {"preset": "360p30"}
BADGE = "document.querySelector('#badge').textContent"
PROBLEM = "document.querySelector('#problem').checkVisibility() && document.querySelector('#problem-text').textContent"
#: Of the camera in the preview.
LABEL = "document.querySelector('#preview').srcObject.getVideoTracks()[0].label"
#: Whether the page asks before it is left.
ASKS = "(() => { const e = new Event('beforeunload', { cancelable: true }); dispatchEvent(e); return e.defaultPrevented; })()"
#: The slate's colour, and that of the fake camera, in RGB.
SLATE, CAMERA = (15, 42, 53), (0, 128, 0)


@pytest.fixture(scope="module")
def weir(start_shared, canary):
    """Its media go through a relay, which may be cut."""
    port = free_port()
    network = relay.Relay(port)
    weir = start_shared(
        "--webrtc", f"127.0.0.1:{port}", "--webrtc-address", f"127.0.0.1:{network.port}",
        "--publish-key", f"{canary}-all", "--admin-token", f"{canary}-admin", "--allowed-host", "studio.example",
        listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    weir.key, weir.admin, weir.network = f"{canary}-all", f"{canary}-admin", network
    yield weir
    network.stop()


@pytest.fixture(scope="module")
def chromium():
    with browsers.chromium(CAMERAS, "--use-fake-ui-for-media-stream", "--host-resolver-rules=MAP studio.example 127.0.0.1") as one:
        yield one


@pytest.fixture
def page(chromium):
    chromium.viewport(1280, 900)
    chromium.prefer(color_scheme="dark")
    yield chromium
    # Nobody is there to answer whether a live page, or one with a copy, may be left.
    chromium.evaluate("void (BeforeUnloadEvent.prototype.preventDefault = () => {})")
    chromium.evaluate("document.querySelector('#stop')?.checkVisibility() && (document.querySelector('#stop').click(), new Promise((done) => setTimeout(done, 700)).then(() => document.querySelector('#stop').click()))")
    chromium.open("about:blank")


def open_page(browser, weir, name: str, key: str = "", **settings) -> None:
    """The page with these settings, once camera and microphone are open."""
    browser.open(f"{weir.web}/web/ui/favicon.svg")
    browser.evaluate(f"localStorage.setItem('weir.publish', {json.dumps(json.dumps({**SMALL, **settings}))})")
    browser.open(f"{weir.web}/publish/{name}")
    browser.wait("!document.querySelector('#start').disabled && document.querySelector('#preview').videoWidth > 0")
    if key:
        browser.wait("document.querySelector('#key').checkVisibility()")
        browser.evaluate(f"document.querySelector('#key').value = {key!r}")


def press(browser, button: str) -> None:
    browser.click(f"document.querySelector('#{button}')")


#: Notes the longest time for which the page stood still, in milliseconds.
BEATS = """(() => {
  let last = performance.now();
  window.longestHalt = 0;
  setInterval(() => {
    const now = performance.now();
    [window.longestHalt, last] = [Math.max(window.longestHalt, now - last), now];
  }, 50);
})()"""


def start(browser) -> None:
    browser.evaluate(BEATS)
    press(browser, "start")
    browser.wait(f"{BADGE} === 'Live'")


def stop(browser) -> None:
    press(browser, "stop")
    watching.confirm(browser, "document.querySelector('#stop')", lambda: press(browser, "stop"))
    browser.wait(f"{BADGE} === 'Not live'")


def playlists(weir, name: str) -> list[str]:
    """The addresses of a stream's media playlists, which name its epoch."""
    return [line for line in weir.get(f"/live/{name}/index.m3u8").text.splitlines() if line and not line.startswith("#")]


def colours(movie) -> list[tuple[int, int, int]]:
    """The mean colour of the picture, four times a second."""
    done = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-i", str(movie), "-vf", "fps=4,scale=1:1", "-f", "rawvideo", "-pix_fmt", "rgb24", "-"],
        capture_output=True, timeout=60, check=True)
    return [tuple(done.stdout[n:n + 3]) for n in range(0, len(done.stdout), 3)]


def loudness(movie) -> list[int]:
    """The loudest sample of each quarter of a second."""
    done = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-i", str(movie), "-vn", "-ac", "1", "-ar", "8000", "-f", "s16le", "-"],
        capture_output=True, timeout=60, check=True)
    samples = memoryview(done.stdout).cast("h")
    return [max(abs(sample) for sample in samples[n:n + 2000]) for n in range(0, len(samples) - 2000, 2000)]


def near(colour, wanted, by: int = 40) -> bool:
    return all(abs(a - b) <= by for a, b in zip(colour, wanted))


#: The page's clock, in seconds.
NOW = "performance.now() / 1000"


def more_frames(weir, name: str, count: int) -> None:
    """Waits until so many more frames of a stream have come."""
    before = weir.stream(name)["received"]["videoFrames"]
    weir.wait(lambda: weir.stream(name)["received"]["videoFrames"] >= before + count, 40, f"{count} frames of {name}")


def longest(marks: list[bool]) -> int:
    """The length of the longest run of marks."""
    best = run = 0
    for mark in marks:
        run = run + 1 if mark else 0
        best = max(best, run)
    return best


def recorded_whole(page, weir, name: str, most: float = 1.5):
    """The recording of a stream that has ended: it decodes, has each frame that came, and no hole: no frame is shown for longer, but
    for a time in which the page stood still. The browser takes some tenths of a second to change what it captures, more on a busy
    machine."""
    movie = weir.only_recording(name)
    # What has ended is told of for a minute.
    came = weir.stream(name)["received"]["videoFrames"]
    errors, _ = packets.decode(movie)
    assert not errors, errors
    video = packets.probe(movie)["video"]
    assert len(video) == came
    steps = [float(b.dts - a.dts) for a, b in zip(video, video[1:])]
    assert min(steps) > 0 and max(steps) < most + page.evaluate("window.longestHalt") / 1000, max(steps)
    return movie


@pytest.fixture
def show(page, weir):
    """The page, which publishes."""
    open_page(page, weir, "show", weir.key)
    start(page)
    weir.wait_state("show", "live")
    return page


def test_a_stream_from_start_to_stop(show, weir):
    """Start, mute and cover, stop: live by HLS meanwhile, and each frame that came is recorded."""
    page = show
    live = packets.probe(f"{weir.web}/live/show/index.m3u8", "-read_intervals", "%+1")
    assert {"video", "audio"} <= set(live), live.keys()
    page.wait("/fps, key frame every .* s, 0 lost/.test(document.querySelector('#figures').textContent)")
    seen = page.evaluate("document.querySelector('#figures').innerText")
    assert "640×360" in seen and "bit/s" in seen and " ms" in seen, seen
    heard = page.wait("(level => level > -60 ? [level] : null)(Number(document.querySelector('#level').ariaValueNow))")
    assert heard[0] <= 0, heard
    marks = [page.evaluate(NOW)]
    press(page, "mute")
    press(page, "cover")
    assert page.evaluate("['mute', 'cover'].map((b) => document.querySelector('#' + b).ariaPressed)") == ["true", "true"]
    more_frames(weir, "show", 5)
    marks.append(page.evaluate(NOW))
    page.evaluate("new Promise((done) => setTimeout(done, 1500))")
    marks.append(page.evaluate(NOW))
    press(page, "mute")
    press(page, "cover")
    more_frames(weir, "show", 15)
    marks.append(page.evaluate(NOW))
    assert page.evaluate(ASKS), "a live page is left without a question"
    stop(page)
    assert not page.evaluate(ASKS)
    assert page.errors == []
    movie = recorded_whole(page, weir, "show")
    # As long as the buttons were pressed, in quarters of a second: at least between the marks within, at most between those around.
    least, most = 4 * (marks[2] - marks[1]) - 2, 4 * (marks[3] - marks[0]) + 2
    assert least <= longest([near(colour, SLATE) for colour in colours(movie)]) <= most, marks
    levels = loudness(movie)
    assert least <= longest([level < 50 for level in levels]) <= most and max(levels) > 3000, (marks, levels)


@pytest.mark.parametrize("most", [1.5, pytest.param(0.5, marks=[pytest.mark.quiet, pytest.mark.long])])
def test_another_camera_and_a_screen_go_on_in_the_same_stream(page, weir, most):
    """Flip, a screen, and back, while it is live: no frame is lost."""
    name = f"scenes-{most:.0f}"
    open_page(page, weir, name, weir.key)
    page.evaluate("(() => { const m = document.querySelector('#camera'); m.selectedIndex = 2; m.dispatchEvent(new Event('change')); })()")
    page.wait(f"{LABEL} === 'fake_device_2'")
    start(page)
    weir.wait_state(name, "live")
    epoch = playlists(weir, name)
    press(page, "flip")
    page.wait(f"{LABEL} === 'fake_device_0'")
    more_frames(weir, name, 15)
    press(page, "screen")
    page.wait(f"{LABEL}.startsWith('screen')")
    more_frames(weir, name, 15)
    press(page, "screen")
    page.wait(f"{LABEL} === 'fake_device_0'")
    more_frames(weir, name, 15)
    assert playlists(weir, name) == epoch
    stop(page)
    assert page.errors == []
    recorded_whole(page, weir, name, most)


def taken_copy(page, weir, name: str, folder):
    """Downloads the copy that the page offers after an outage."""
    page.wait("document.querySelector('#copies').checkVisibility()")
    assert page.evaluate(ASKS), "a copy is lost without a question"
    page.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(folder))
    page.click("document.querySelector('#copies a')")
    return weir.wait(lambda: next(folder.glob(f"{name}-*.mp4"), None), 20, "the copy")


@pytest.mark.long
def test_a_network_that_is_cut_for_ten_seconds_is_survived(page, weir, tmp_path):
    """The same epoch goes on, each frame that arrived whole is recorded, and a copy of what was sent meanwhile is offered."""
    open_page(page, weir, "far", weir.key)
    start(page)
    before = weir.wait_state("far", "live")
    epoch = playlists(weir, "far")
    more_frames(weir, "far", 60)
    weir.network.hole(10)
    page.wait(f"{BADGE} === 'Reconnecting'")
    page.wait(f"{BADGE} === 'Live'")
    more_frames(weir, "far", 30)
    assert weir.stream("far")["startedAt"] == before["startedAt"]
    assert playlists(weir, "far") == epoch
    stop(page)
    copy = taken_copy(page, weir, "far", tmp_path)
    errors, _ = packets.decode(copy)
    assert not errors and len(colours(copy)) > 10 * 4, errors
    movie = weir.only_recording("far")
    errors, _ = packets.decode(movie)
    assert not errors, errors
    tracks = packets.probe(movie)
    video = tracks["video"]
    steps = [float(b.dts - a.dts) for a, b in zip(video, video[1:])]
    # A pause of up to ten seconds is a hole in the media. A longer one is spliced, and what comes before its first key frame, of
    # which nothing can be decoded, is lost.
    assert min(steps) > 0 and len([step for step in steps if step > 8]) <= 1, (min(steps), max(steps))
    assert abs(float(video[-1].dts - tracks["audio"][-1].dts)) < 0.5, "audio and video end together"
    assert weir.stream("far")["received"]["videoFrames"] == len(video)


#: Chooses an entry of a menu.
CHOOSE = "(() => { const m = document.querySelector('#%s'); m.%s = %s; m.dispatchEvent(new Event('change')); return m.value; })()"


def test_what_is_chosen_in_the_menus_is_remembered(page, weir):
    """Camera, microphone, size and codec, when the page is opened again. The preview shows them."""
    open_page(page, weir, "menus")
    assert page.evaluate(LABEL) == "fake_device_0"
    heard = "document.querySelector('#microphone').selectedOptions[0].text"
    usual = page.evaluate(heard)
    chosen = {
        "camera": page.evaluate(CHOOSE % ("camera", "selectedIndex", 2)),
        "microphone": page.evaluate(CHOOSE % ("microphone", "selectedIndex", 2)),
        "preset": page.evaluate(CHOOSE % ("preset", "value", "'480p30'")),
        "codec": page.evaluate(CHOOSE % ("codec", "value", "'VP9'")),
    }
    page.wait(f"{LABEL} === 'fake_device_2'")
    # A menu shows what is in use until the choice is.
    page.wait(f"{heard} !== {json.dumps(usual)}")
    other = page.evaluate(heard)
    assert len(set(chosen.values())) == 4 and all(chosen.values()), chosen
    page.open(f"{weir.web}/publish/other-menus")
    page.wait("!document.querySelector('#start').disabled && document.querySelector('#preview').videoWidth === 854")
    assert page.evaluate(LABEL) == "fake_device_2"
    assert {menu: page.evaluate(f"document.querySelector('#{menu}').value") for menu in chosen} == chosen
    assert page.evaluate(heard) == other
    assert page.evaluate("document.querySelector('#preview').srcObject.getVideoTracks()[0].getSettings().height") == 480


#: How often the page has asked for paths that are so, since it was opened.
ASKED = "performance.getEntriesByType('resource').filter(({ name }) => new URL(name).pathname%s).length"


def test_a_network_that_changes_goes_on_in_the_same_session(page, weir, tmp_path):
    """Five seconds without it: ICE begins again (RFC 8839 §4.4.1.1), in the session that there was. No other offer is made. A copy
    of what was sent meanwhile is offered."""
    def sessions() -> list[str]:
        answer = weir.get("/api/v1/sessions?stream=moved", headers={"Authorization": f"Bearer {weir.admin}"}).good()
        return [one["id"] for one in json.loads(answer.body)["sessions"]]

    open_page(page, weir, "moved", weir.key)
    start(page)
    before = weir.wait_state("moved", "live")
    epoch, session = playlists(weir, "moved"), sessions()
    assert len(session) == 1, session
    offers, changes = ASKED % " === '/whip/moved'", ASKED % ".startsWith('/whip/moved/')"
    assert page.evaluate(f"[{offers}, {changes}]") == [1, 0]
    weir.network.hole(5)
    page.wait(f"{BADGE} === 'Reconnecting'")
    page.wait(f"{BADGE} === 'Live'")
    more_frames(weir, "moved", 30)
    assert sessions() == session and playlists(weir, "moved") == epoch
    assert page.evaluate(offers) == 1 and page.evaluate(changes) in (1, 2)
    assert weir.stream("moved")["startedAt"] == before["startedAt"]
    stop(page)
    errors, _ = packets.decode(taken_copy(page, weir, "moved", tmp_path))
    assert not errors, errors


def test_a_wrong_key_is_told_and_what_a_key_may_is_shown(page, weir, canary):
    """The key is in no address and no storage but that of its tab, where that was asked for."""
    open_page(page, weir, "keyed", f"{canary}-wrong")
    press(page, "start")
    assert "key is missing or wrong" in page.wait(PROBLEM)
    assert page.evaluate("document.activeElement.id") == "key" and page.evaluate(BADGE) == "Not live"
    assert weir.stream("keyed") is None
    assert canary not in page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href])")
    press(page, "key-keep")
    page.evaluate(f"document.querySelector('#key').value = {weir.key!r}")
    start(page)
    assert canary not in page.evaluate("JSON.stringify([{ ...localStorage }, location.href])")
    assert page.evaluate("sessionStorage.getItem('weir.publishKey')") == weir.key
    # The publish key may not control the recording; an admin token of this tab may.
    page.wait("document.querySelector('#recording-state').textContent === 'Recording'")
    page.click("[...document.querySelectorAll('#recording-buttons button')].find((b) => b.checkVisibility())")
    page.wait("document.querySelector('#recording-reason').textContent.includes('not control the recording')")
    stop(page)
    page.evaluate(f"sessionStorage.setItem('weir.adminToken', {weir.admin!r})")
    start(page)
    page.wait("document.querySelector('#recording-state').textContent === 'Recording'")
    page.click("[...document.querySelectorAll('#recording-buttons button')].find((b) => b.checkVisibility() && b.textContent === 'Stop')")
    weir.wait(lambda: weir.stream("keyed")["recording"]["state"] == "completed", 20, "the end of the recording")
    assert weir.stream("keyed")["state"] == "live"
    page.evaluate("sessionStorage.clear()")
    # What an administrator has ended does not come back by itself.
    weir.get("/api/v1/streams/keyed", method="DELETE", headers={"Authorization": f"Bearer {weir.admin}"}).good()
    assert "server has ended the stream" in page.wait(PROBLEM)
    assert page.evaluate(BADGE) == "Not live" and page.evaluate("document.querySelector('#start').checkVisibility()")


def test_the_servers_reason_for_an_end_is_told(page, weir):
    """Of a session, after which the page begins another one, and of the stream."""
    admin = {"Authorization": f"Bearer {weir.admin}"}
    open_page(page, weir, "why", weir.key)
    start(page)
    weir.wait_state("why", "live")

    def sessions() -> list[str]:
        return [one["id"] for one in json.loads(weir.get("/api/v1/sessions?stream=why", headers=admin).good().body)["sessions"]]

    with page.answering("*/whip/why/*", lambda _: (410, '{"detail": "It is enough."}')):
        [session] = sessions()
        weir.get(f"/api/v1/sessions/{session}", method="DELETE", headers=admin).good()
        assert "ended the connection (It is enough)" in page.wait(PROBLEM)
        # The page says so before the server has its next session.
        weir.wait(lambda: set(sessions()) - {session}, 40, "the page's next session")
        page.wait(f"{BADGE} === 'Live'")
        weir.get("/api/v1/streams/why", method="DELETE", headers=admin).good()
        page.wait(f"{BADGE} === 'Not live'")
        assert "ended the stream (It is enough). Press Start" in page.evaluate(PROBLEM)


def test_a_name_that_another_page_took_is_not_taken_back(page, weir):
    """It says so and stops."""
    open_page(page, weir, "both", weir.key)
    start(page)
    weir.wait_state("both", "live")
    with page.another_page() as other:
        open_page(other, weir, "both", weir.key)
        start(other)
        assert "Another publisher has taken this name" in page.wait(PROBLEM)
        assert page.evaluate(BADGE) == "Not live"
        stop(other)


def test_a_stream_that_is_stopped_at_once_did_not_fail(page, weir):
    """Nor does Enter in a field of numbers begin one."""
    open_page(page, weir, "brief", weir.key)
    page.evaluate("document.querySelector('#expert').open = true; document.querySelector('#bit-rate').focus()")
    page.press("Enter", "Enter")
    assert page.evaluate(BADGE) == "Not live"
    for _ in range(3):
        page.evaluate("document.querySelector('#start').click(), document.querySelector('#stop').click()")
        page.wait(f"{BADGE} === 'Not live'")
    time.sleep(0.5)
    assert page.evaluate(PROBLEM) is False and page.errors == []
    # The last request of the page may be under way.
    weir.wait(lambda: (stream := weir.stream("brief")) is None or stream["state"] == "ended", 20, "no stream")


def test_the_page_is_used_by_keys_and_read_aloud_at_every_width(page, weir):
    """axe finds nothing, not live and live; the page fits 320 pixels; it starts by the keyboard."""
    open_page(page, weir, "keys", weir.key)
    for state in ("not live", "live"):
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.wait("document.querySelectorAll('#viewer-rows svg[role=img]').length === 1")
        for scheme, width in (("dark", 320), ("light", 320), ("light", 1280)):
            page.prefer(color_scheme=scheme)
            page.viewport(width, 640)
            assert axe.findings(page) == [], (state, scheme, width)
            assert page.evaluate(OVERFLOW) <= 0, (state, scheme, width)
        page.viewport(320, 640)
        page.evaluate("scrollTo(0, 0)")
        fits = "document.querySelector('#controls').getBoundingClientRect().bottom <= innerHeight"
        assert page.evaluate(fits), (state, "picture and buttons do not fit a phone")
        if state == "not live":
            page.evaluate("document.querySelector('.brand').focus()")
            walk(page, "#start")
            page.press("Enter", "Enter")
            page.wait(f"{BADGE} === 'Live'")
    # The buttons have changed places under the focus.
    assert page.evaluate("document.activeElement.id") == "stop"
    stop(page)


def test_what_is_missing_is_said_in_plain_words(page, weir, start_shared):
    """No WebRTC at the server, no secure page, a name that none can have, and no permission."""
    off = start_shared("--no-record")
    page.open(f"{off.web}/publish")
    assert "--webrtc :8189" in page.wait(PROBLEM)
    assert page.evaluate("document.querySelector('#start').disabled && document.querySelector('#name').checkVisibility()")
    assert axe.findings(page) == []
    page.open(f"http://studio.example:{weir.web.rsplit(':', 1)[1]}/publish/cam")
    text = page.wait(PROBLEM)
    assert "https://" in text and "--tls-cert" in text and "localhost" in text, text
    assert weir.get("/publish/-cam").status == 404
    policy = weir.get("/publish/cam").headers["permissions-policy"]
    assert policy == "camera=(self), microphone=(self), display-capture=(self)"
    assert weir.get("/watch/cam").headers["permissions-policy"] == policy.replace("(self)", "()")
    with browsers.chromium(CAMERAS, "--deny-permission-prompts") as shy:
        shy.open(f"{weir.web}/publish/cam")
        assert "does not let this page use camera" in shy.wait(PROBLEM)
        # One is not enough; without both there is nothing that needs a permission.
        for menu, leads_on in (("microphone", False), ("camera", True)):
            assert shy.evaluate("document.querySelector('#again').checkVisibility()")
            shy.evaluate(f"(() => {{ const m = document.querySelector('#{menu}'); m.value = 'none'; m.dispatchEvent(new Event('change')); }})()")
            shy.wait(f"document.querySelector('#start').disabled !== {json.dumps(leads_on)}")
        shy.wait(f"!({PROBLEM})")


def test_the_home_page_leads_to_it(page, weir):
    page.open(f"{weir.web}/")
    page.evaluate(f"sessionStorage.setItem('weir.adminToken', {weir.admin!r})")
    page.open(f"{weir.web}/")
    page.wait("document.querySelector('#publish').checkVisibility()")
    page.evaluate("document.querySelector('#publish').open = true")
    page.wait("document.querySelector('#publish-rows .publish-here a') !== null")
    assert page.evaluate("document.querySelector('#publish-rows .publish-here a').pathname") == "/publish/cam"
    page.evaluate("sessionStorage.clear()")


def test_firefox_publishes_vp9(firefox, start_shared):
    """Firefox 153 has no H.264 here. It sends VP9. It uses no loopback, so the server listens at all addresses."""
    weir = start_shared("--webrtc", "0.0.0.0:0", listeners=("http", "rtmp", "webrtc"))
    open_page(firefox, weir, "fox")
    start(firefox)
    stream = weir.wait_state("fox", "live", seconds=30)
    assert [t["codec"] for t in stream["tracks"]] == ["VP9", "Opus"], stream["tracks"]
    firefox.wait("/fps, .*0 lost/.test(document.querySelector('#figures').textContent)")
    stop(firefox)
    assert firefox.errors == []
    movie = weir.only_recording("fox")
    errors, _ = packets.decode(movie)
    assert not errors, errors
