"""The pages are readable, accessible and self-contained: names, keyboard, contrast, screen sizes, no foreign hosts."""

import json
import time
import urllib.parse

import pytest

import watching
from harness import publishers, tools

BOTH = pytest.mark.parametrize("browser", ["chromium", "firefox"], indirect=True)
#: For texts and layout.
MOSTLY_CHROMIUM = pytest.mark.parametrize("browser", ["chromium", pytest.param("firefox", marks=pytest.mark.long)], indirect=True)
SCHEMES = pytest.mark.parametrize("scheme", ["dark", "light"])

#: Text with a contrast below 4.5:1 (WCAG 2.2, 1.4.3), as "ratio text". Text over images is not checked.
POOR_CONTRAST = """(() => {
  const parse = (colour) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
    const pen = canvas.getContext("2d");
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) => [0, 1, 2].map((n) => top[n] * top[3] + below[n] * (1 - top[3])).concat(1);
  const light = (colour) => {
    const [r, g, b] = colour.map((v) => v / 255).map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) layers.unshift(parse(getComputedStyle(e).backgroundColor));
    return layers.reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest("#stage, .visually-hidden, .skip, noscript, script, option")) continue;
    const below = ground(element), above = over(parse(getComputedStyle(element).color), below);
    const [high, low] = [light(above), light(below)].sort((a, b) => b - a);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 40)}`);
  }
  return poor;
})()"""

FOREIGN = "performance.getEntriesByType('resource').map((e) => e.name).filter((u) => !u.startsWith(location.origin) && !u.startsWith('blob:' + location.origin))"
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def open_home(browser, server):
    browser.open(f"{server.web}/")
    browser.wait("document.querySelector('#version').textContent !== 'weir'")


@MOSTLY_CHROMIUM
def test_the_home_page_lists_a_stream_with_state_codecs_and_viewers(browser, demo):
    open_home(browser, demo)
    # What is not painted yet has no text (content-visibility).
    browser.wait("document.querySelectorAll('#streams > li').length === 1 && document.querySelector('#streams > li').innerText !== ''")
    card = browser.evaluate("document.querySelector('#streams > li').innerText")
    assert "demo" in card and "Live" in card
    assert "H.264 320×180, 30 fps" in card and "AAC 48 kHz, stereo" in card
    assert "viewer" in card and "on air for" in card
    assert browser.evaluate("document.querySelector('#streams a').href") == f"{demo.web}/watch/demo"
    assert browser.evaluate(FOREIGN) == []
    assert browser.errors == []
    watching.leave(browser)


def test_the_home_page_refreshes_itself_and_tells_screen_readers(page, weir):
    open_home(page, weir)
    publisher = publishers.ffmpeg("loop", f"{weir.rtmp}/live/fresh", loop=-1)
    try:
        page.wait("[...document.querySelectorAll('#streams a')].some((a) => a.textContent === 'fresh')")
        page.wait("document.querySelector('#announcer').textContent.includes('fresh went live')")
    finally:
        publisher.kill()


def test_an_empty_home_page_says_how_to_publish_with_this_hosts_name(page, start):
    server = start()
    open_home(page, server)
    page.wait("!document.querySelector('#no-streams').hidden")
    assert page.evaluate("document.querySelector('#publish').open") is True
    rows = page.evaluate("document.querySelector('#publish-rows').innerText")
    assert f"{server.rtmp}/live" in rows
    assert f'-f flv "{server.rtmp}/live/cam"' in rows
    assert page.evaluate("document.querySelector('#open-warning').hidden") is False
    page.evaluate("(() => { const i = document.querySelector('#name'); i.value = 'stage.left'; i.dispatchEvent(new Event('input')); })()")
    page.wait(f"document.querySelector('#publish-rows').innerText.includes('{server.rtmp}/live/stage.left')")


def test_a_server_with_rtmps_says_how_to_publish_encrypted(page, start, tmp_path):
    cert, key = tools.make_certificate(tmp_path)
    server = start("--rtmps", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, listeners=("http", "rtmp", "rtmps"))
    rows = """Object.fromEntries([...document.querySelectorAll('#publish-rows .copy-row')].map((row) =>
      [row.firstElementChild.textContent.trim(), row.querySelector('code').textContent]))"""
    open_home(page, server)
    page.wait("document.querySelector('#publish-rows .copy-row') !== null")
    shown = page.evaluate(rows)
    assert shown["OBS server"] == f"{server.rtmp}/live"
    assert shown["OBS server, encrypted"] == f"{server.addresses['rtmps']}/live"
    # Without RTMP it is the only one. The usual port, that of HTTPS, is left out.
    alone = {**server.json("/api/v1/streams"), "rtmpPort": None, "rtmpsPort": 443}
    with page.answering(f"{server.web}/api/v1/streams", lambda _: json.dumps(alone)):
        open_home(page, server)
        page.wait("document.querySelector('#publish-rows .copy-row') !== null")
        shown = page.evaluate(rows)
    assert shown["OBS server"] == "rtmps://127.0.0.1/live" and "OBS server, encrypted" not in shown
    assert any('"rtmps://127.0.0.1/live/cam"' in command for command in shown.values())


def test_a_button_copies_the_command_beside_it(page, demo):
    page.open(f"{demo.web}/watch/demo?player=mse")
    row = "document.querySelector('#watch-rows .copy-row')"
    page.wait(f"{row} !== null")
    # The announcement of the page's start is over.
    page.wait("document.querySelector('#announcer').textContent === 'demo is live'")
    # The video has its size, so that nothing moves any more.
    page.wait("document.querySelector('#video').videoWidth > 0")
    # The word stands there for two seconds.
    page.evaluate(f"""void ((button) => {{
      Object.assign(window, {{ words: [], clicked: [] }});
      new MutationObserver(() => words.push(button.innerText.trim())).observe(button, {{ childList: true, characterData: true, subtree: true }});
      addEventListener("click", ({{ target }}) => clicked.push(target.outerHTML.slice(0, 100)), true);
    }})({row}.querySelector('button'))""")
    page.click(f"{row}.querySelector('button')")
    page.wait("words.includes('Copied')", tell="[words, clicked]")
    assert page.evaluate("document.querySelector('#announcer').textContent") == "ffplay copied"
    assert page.evaluate(f"{row}.querySelector('code').textContent") == f"ffplay {demo.web}/live/demo/index.m3u8"


def test_a_page_shows_a_placeholder_and_never_the_publish_key(page, start, canary):
    server = start("--publish-key", canary)
    open_home(page, server)
    page.wait("document.querySelector('#publish-rows').innerText.includes('cam?key=YOUR_KEY')")
    assert page.evaluate("document.querySelector('#open-warning').hidden") is True
    assert canary not in page.evaluate("document.documentElement.outerHTML")


@MOSTLY_CHROMIUM
@pytest.mark.parametrize("name", [
    "<img src=x onerror=\"window.hacked=1\">", "\"><script>window.hacked=1</script>", "javascript:window.hacked=1",
    "..%2f..%2fetc", "a b", "%F0%9F%92%A9", "%zz", "x" * 65, "-dash",
])
def test_hostile_stream_names_stay_inert(browser, name, demo):
    address = f"{demo.web}/watch/{name if '%' in name else urllib.parse.quote(name, safe='')}"
    browser.open(address)
    time.sleep(0.3)
    assert browser.evaluate("window.hacked ?? null") is None
    assert browser.evaluate("document.querySelector('img, main script') === null")
    assert not [e for e in browser.errors if "policy violation" in e]
    watching.leave(browser)


def test_hostile_texts_of_the_api_are_shown_and_not_run(page, demo):
    evil = '<img src=x onerror="window.hacked=1"><b id=evil>'
    stream = {
        "name": evil, "state": "live", "protocol": evil, "startedAt": evil, "ageSeconds": 1, "viewers": 1, "bitrate": 1,
        "gopSeconds": 2, "tracks": [{"id": 1, "kind": "video", "codec": evil, "codecString": evil, "width": 1, "height": 1}],
        "warnings": [evil], "recording": {"state": "failed", "reason": evil, "seconds": 1, "bytes": 1}, "urls": {},
    }
    bodies = {
        "/api/v1/streams": {"version": evil, "streams": [stream], "rtmpPort": 1935, "publishKeyRequired": False},
        "/api/v1/recordings": {"recordings": [
            {"stream": evil, "file": evil, "url": "javascript:window.hacked=1", "bytes": 1, "seconds": 1, "startedAt": "", "state": evil}]},
    }
    with page.answering(f"{demo.web}/api/*", lambda url: json.dumps(bodies[urllib.parse.urlsplit(url).path])):
        page.open(f"{demo.web}/")
        page.wait("document.querySelectorAll('#recordings-list > li').length === 1")
        assert page.evaluate("document.querySelector('#streams a').textContent") == evil
        assert page.evaluate("document.querySelector('#evil, main img') === null")
        assert page.evaluate("[...document.querySelectorAll('main a[href]')].every((a) => a.protocol === 'http:')")
        assert page.evaluate("window.hacked ?? null") is None
        # The stream is made up, and has no picture.
        assert [e for e in page.errors if "thumbnail.jpg" not in e] == []


@pytest.mark.parametrize("path", ["/", "/watch/demo?player=mse"])
def test_nothing_overflows_sideways(page, path, demo):
    page.viewport(320, 800)
    page.open(demo.web + path)
    page.wait("document.querySelector('#publish-rows').children.length > 0")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("document.querySelector('#info')?.click()")
    for width in (320, 390, 768, 1280, 3840):
        page.viewport(width, 800)
        time.sleep(0.2)
        assert page.evaluate(OVERFLOW) <= 0, width


@SCHEMES
@pytest.mark.parametrize("path, there", [
    ("/", "document.querySelectorAll('#streams > li').length === 1"),
    ("/watch/demo?player=mse", "document.querySelector('#stage').dataset.phase === 'playing'"),
    ("/watch/nobody", "document.querySelector('#stage').dataset.phase === 'notStarted'"),
], ids=["home", "watch", "nobody"])
def test_every_text_has_enough_contrast(page, path, there, scheme, demo):
    page.prefer(color_scheme=scheme)
    page.open(demo.web + path)
    page.wait(f"document.querySelector('#publish-rows').children.length > 0 && {there}")
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    page.evaluate("document.querySelector('#info')?.click()")
    page.wait("(document.querySelector('#figures')?.children.length ?? 1) > 0")
    time.sleep(0.3)
    assert page.evaluate("document.body.innerText.length") > 200
    assert page.evaluate(POOR_CONTRAST) == []


def test_the_player_works_by_keyboard_alone(page, demo):
    watching.watch(page, demo, "demo", "?player=mse")
    focused = []
    for _ in range(20):
        page.press("Tab", "Tab")
        focused.append(page.evaluate("document.activeElement.id || document.activeElement.textContent"))
        if focused[-1] == "fullscreen":
            break
        outline = page.evaluate("(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2; })()")
        assert outline, f"the focus on {focused[-1]!r} cannot be seen"
    for button in ("unmute", "seek", "play", "back", "mute", "live", "help-open", "info", "fullscreen"):
        assert button in focused
    page.press("k", "KeyK")
    page.wait("document.querySelector('#video').paused")
    page.wait("document.querySelector('#play').getAttribute('aria-label') === 'Play'")
    page.press("k", "KeyK")
    page.wait("!document.querySelector('#video').paused")
    page.press("m", "KeyM")
    page.wait("!document.querySelector('#video').muted")
    page.press("m", "KeyM")
    page.wait("document.querySelector('#video').muted")
    page.press("i", "KeyI")
    page.wait("!document.querySelector('#details').hidden")
    page.press("i", "KeyI")
    page.wait("document.querySelector('#details').hidden")
    assert page.errors == []


def test_a_pause_stays_a_pause_and_playing_again_returns_to_the_live_edge(page, demo):
    watching.watch(page, demo, "demo", "?player=mse")
    page.evaluate("document.querySelector('#play').click()")
    page.wait("document.querySelector('#video').paused")
    before = watching.state(page)["time"]
    time.sleep(4)  # real time: a pause long enough to be seen as a jump
    assert watching.state(page)["time"] == before
    page.evaluate("(document.querySelector('#play').click(), document.querySelector('#live').click(), window.clicked = performance.now())")
    # It jumps, beyond what plays meanwhile.
    page.wait(f"document.querySelector('#video').currentTime - {before} - (performance.now() - clicked) / 1000 > 2.5")
    page.wait("document.querySelector('#live').dataset.edge === 'live'")


@pytest.mark.parametrize("player", ["mse", "hls"])
def test_a_pause_while_the_video_seeks_stays_a_pause(page, demo, player):
    """By a headset or by the system: the page is only told of it."""
    watching.watch(page, demo, "demo", f"?player={player}")
    assert page.evaluate("""new Promise((told) => {
      const video = document.querySelector("#video");
      // In front of the page's own listener: a seek of what is there may be over by then.
      document.addEventListener("pause", () => {
        if (!video.seeking) video.currentTime += 0.01;
        told(video.seeking);
      }, { capture: true, once: true });
      video.currentTime += 0.01;
      video.pause();
    })"""), "the page is told while the video seeks"
    time.sleep(1)  # real time: the page could let it play at any of its ticks, four a second
    assert watching.state(page)["paused"]
    page.evaluate("document.querySelector('#play').click()")
    page.wait("!document.querySelector('#video').paused")


def test_every_control_has_a_name(page, demo):
    watching.watch(page, demo, "demo", "?player=mse")
    nameless = page.evaluate(
        "[...document.querySelectorAll('button, a, input')].filter((e) => e.checkVisibility() && !(e.getAttribute('aria-label')"
        " || e.innerText.trim() || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))")
    assert nameless == []


def test_reduced_motion_stills_the_page(page, demo):
    page.prefer(color_scheme="dark", reduced_motion="reduce")
    page.open(f"{demo.web}/watch/nobody")
    watching.wait_phase(page, "notStarted")
    page.evaluate("document.querySelector('#spinner').hidden = false")
    time.sleep(0.2)
    assert page.evaluate("document.getAnimations().filter((a) => a.playState === 'running').length") == 0


def test_a_finished_recording_is_listed_played_and_downloadable(page, weir):
    publishers.ffmpeg("short", f"{weir.rtmp}/live/taped").wait()
    weir.wait(lambda: [r for r in weir.recordings_of("taped") if r["state"] == "completed"], 40, "a finished recording")
    open_home(page, weir)
    row = "[...document.querySelectorAll('#recordings-list > li')].find((li) => li.querySelector('h3').textContent === 'taped')"
    page.wait(f"{row} !== undefined", 15)
    text = page.evaluate(f"{row}.innerText")
    assert "0:04" in text or "0:03" in text
    link = page.evaluate(f"(() => {{ const a = {row}.querySelector('a[download]'); return [a.href, a.download]; }})()")
    assert link[0].startswith(f"{weir.web}/recordings/taped/") and link[1].endswith(".mp4")
    page.click(f"{row}.querySelector('button')")
    page.wait("document.querySelector('#recording-video')?.currentTime > 0.5")
    page.evaluate("document.querySelector('#recording-video').currentTime = 2")
    page.wait("document.querySelector('#recording-video')?.currentTime > 2.5 && document.querySelector('#recording-dialog').open")
    page.press("Escape", "Escape")
    page.wait("!document.querySelector('#recording-dialog').open")
    assert page.errors == []


def test_what_a_capture_lacks_is_told_on_its_page(page, start):
    weir = start("--source", "cam=v4l2:/dev/video63?size=320x180&fps=10&preset=ultrafast&gop=1s,alsa:hw:9", "--no-record")
    weir.wait_state("cam", "live", seconds=30)
    watching.watch(page, weir, "cam")
    shown = page.evaluate(watching.DETAILS)
    assert "there is no camera /dev/video63; plug it in" in shown["Camera"]
    assert "there is no microphone hw:9; plug it in" in shown["Microphone"]
    assert shown["Encoder"].startswith("libx264, ")
    watching.leave(page)


def test_the_pages_carry_the_content_security_policy(demo):
    for path in ("/", "/watch/demo"):
        policy = demo.get(path).good().headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; media-src 'self' blob:")
        assert "unsafe" not in policy


def test_a_tap_gives_audio(page, demo):
    watching.watch(page, demo, "demo", "?player=mse")
    page.wait("!document.querySelector('#unmute').hidden")
    page.click("document.querySelector('#unmute')")
    page.wait("!document.querySelector('#video').muted && document.querySelector('#unmute').hidden")
    then = watching.state(page)["time"]
    page.wait(f"document.querySelector('#video').currentTime > {then} + 1")
