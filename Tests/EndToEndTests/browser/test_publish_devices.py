"""The publish page with devices that are not Chromium's fake ones: phones, loud microphones, and a screen with its audio. Stand-ins
take their place in the page."""

import contextlib
import json
import subprocess

import pytest

import browsers
from harness import packets, tools
from test_publish_page import BADGE, CAMERAS, LABEL, NOW, colours, longest, loudness, more_frames, near, open_page, press, start, stop

#: Of the meter, in decibels below full scale. It is told once a second.
LEVEL = "Number(document.querySelector('#level').ariaValueNow)"
TOO_LOUD = "document.querySelector('#clipping').checkVisibility()"

#: Takes the place of getUserMedia: `replace(media, wanted)` gives what the page gets. A track that is made of a device's ends with it.
STAND_IN = """(() => {
  const devices = navigator.mediaDevices;
  if (devices === undefined) return;
  const open = devices.getUserMedia.bind(devices);
  const made = (track, device, settings = {}) => {
    const end = track.stop.bind(track), own = device.getSettings.bind(device);
    track.stop = () => { device.stop(); end(); };
    track.getSettings = () => ({ ...own(), ...settings });
    return track;
  };
  const replace = %s;
  devices.getUserMedia = async (wanted) => replace(wanted, open, made);
})()"""

#: A microphone with a tone in two channels, each as loud as is said: 1 is full scale.
TONE = """async (wanted, open, made) => {
  const media = await open(wanted);
  const [microphone] = media.getAudioTracks();
  if (microphone === undefined) return media;
  const context = new AudioContext();
  addEventListener("pointerup", () => context.resume());
  const tone = new OscillatorNode(context), merger = new ChannelMergerNode(context, { numberOfInputs: 2 });
  %s.forEach((gain, side) => tone.connect(new GainNode(context, { gain })).connect(merger, 0, side));
  const end = new MediaStreamAudioDestinationNode(context);
  merger.connect(end);
  tone.start();
  return new MediaStream([made(end.stream.getAudioTracks()[0], microphone), ...media.getVideoTracks()]);
}"""

#: A phone that is held upright: its picture is red above and blue below.
UPRIGHT = """async (wanted, open, made) => {
  const media = await open(wanted);
  const [camera] = media.getVideoTracks();
  if (camera === undefined) return media;
  const canvas = Object.assign(document.createElement("canvas"), { width: 360, height: 640 });
  const pen = canvas.getContext("2d");
  const draw = () => {
    if (camera.readyState === "ended") return clearInterval(timer);
    [["red", 0], ["blue", 320]].forEach(([colour, top]) => { pen.fillStyle = colour; pen.fillRect(0, top, 360, 320); });
    pen.fillStyle = "white";
    pen.fillRect(0, performance.now() / 10 % 320, 8, 8);
  };
  const timer = setInterval(draw, 1000 / 30);
  draw();
  const [track] = canvas.captureStream().getVideoTracks();
  return new MediaStream([made(track, camera, { width: 360, height: 640 }), ...media.getAudioTracks()]);
}"""

#: A phone with one camera at a time: the other side is not readable while a camera runs. `asked` has each request: the side,
#: and whether a camera ran.
PHONE = """async (wanted, open, made) => {
  if (!wanted.video) return open(wanted);
  const { facingMode, ...rest } = wanted.video, side = facingMode?.exact ?? facingMode?.ideal ?? "user";
  const isInUse = globalThis.camera?.readyState === "live";
  (globalThis.asked ??= []).push([side, isInUse]);
  if (isInUse) throw new DOMException("in use", "NotReadableError");
  const cameras = (await navigator.mediaDevices.enumerateDevices()).filter(({ kind }) => kind === "videoinput");
  const { deviceId } = cameras[side === "user" ? 0 : 2];
  const media = await open({ ...wanted, video: { ...rest, ...deviceId === "" ? {} : { deviceId: { exact: deviceId } } } });
  const [camera] = media.getVideoTracks(), settings = camera.getSettings.bind(camera);
  camera.getSettings = () => ({ ...settings(), facingMode: side });
  globalThis.camera = camera;
  return media;
}"""

#: A tab that is shown in place of a screen: one colour, something that moves, and a loud tone.
TAB = """data:text/html,<title>Shown</title><body style="background: rgb(255, 0, 255)"><i>x</i><script>
  const context = new AudioContext(), tone = new OscillatorNode(context);
  tone.connect(context.destination);
  tone.start();
  setInterval(() => { document.querySelector("i").style.marginLeft = performance.now() / 10 %25 99 + "px"; }, 40);
</script>""".replace("\n", "")


@pytest.fixture(scope="module")
def keys(canary):
    """Of two who may publish: one may also record."""
    return {"director": f"{canary}-director", "guest": f"{canary}-guest"}


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory, canary, keys):
    file = tmp_path_factory.mktemp("configuration") / "weir.json"
    file.write_text(json.dumps({"keys": [
        {"name": "director", "key": keys["director"], "publish": ["*"], "record": ["*"]},
        {"name": "guest", "key": keys["guest"], "publish": ["*"]}]}))
    weir = start_shared("--webrtc", "0.0.0.0:0", "--config", file, listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    yield weir


@pytest.fixture(scope="module")
def chromium():
    with browsers.chromium(CAMERAS, "--use-fake-ui-for-media-stream") as one:
        yield one


@pytest.fixture
def page(chromium):
    yield chromium
    leave(chromium)


def leave(browser) -> None:
    """Leaves a page that may be live. Its stream has ended when the next one is opened."""
    browser.evaluate("void (BeforeUnloadEvent.prototype.preventDefault = () => {})")
    browser.open("about:blank")


@contextlib.contextmanager
def standing_in(browser, replace: str):
    """The pages that are opened meanwhile get other devices."""
    script = browser.call("Page.addScriptToEvaluateOnNewDocument", source=STAND_IN % replace)["identifier"]
    try:
        yield
    finally:
        browser.call("Page.removeScriptToEvaluateOnNewDocument", identifier=script)


def sizes(movie) -> set[str]:
    """"WIDTH,HEIGHT" of the decoded frames."""
    done = tools.run(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries", "frame=width,height", "-of", "csv=p=0", movie)
    return set(done.stdout.split())


def halves(movie) -> list[tuple[int, int, int]]:
    """The mean colours of the upper and the lower half of the picture, after a second."""
    done = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-ss", "1", "-i", str(movie), "-vf", "scale=1:2:flags=area", "-frames:v", "1", "-f",
         "rawvideo", "-pix_fmt", "rgb24", "-"], capture_output=True, timeout=60, check=True)
    return [tuple(done.stdout[n:n + 3]) for n in (0, 3)]


def test_the_level_is_shown_before_start_and_clipping_of_one_channel_is_told(page, weir, keys):
    """Any press of the page lets its meter run. The quiet channel hides nothing of the loud one."""
    for gains, level, is_too_loud in (((0.4, 0), -8, False), ((0, 1), 0, True), ((1, 1), 0, True)):
        with standing_in(page, TONE % list(gains)):
            open_page(page, weir, "loud", keys["guest"])
        page.click("document.querySelector('#title')")
        page.wait(f"Math.abs({LEVEL} - {level}) <= 1")
        assert page.evaluate(TOO_LOUD) == is_too_loud, gains
        text = page.evaluate("document.querySelector('#level').ariaValueText")
        assert ("too loud" in text) == is_too_loud, text
        assert page.evaluate(BADGE) == "Not live" and page.errors == []


def test_a_phone_that_is_held_upright_is_shown_upright(page, weir, keys):
    """In the preview, and in the recording: also while the slate is sent."""
    with standing_in(page, UPRIGHT):
        open_page(page, weir, "tall", keys["guest"])
    assert page.evaluate("document.querySelector('#stage').dataset.upright") == "true"
    start(page)
    page.wait("/fps, .*0 lost/.test(document.querySelector('#figures').textContent)")
    press(page, "cover")
    page.wait("document.querySelector('#cover').ariaPressed === 'true'")
    page.wait("document.querySelector('#figures').innerText.includes('360×640')")
    press(page, "cover")
    stop(page)
    assert page.errors == []
    movie = weir.only_recording("tall")
    assert sizes(movie) == {"360,640"}
    above, below = halves(movie)
    assert near(above, (255, 0, 0), 60) and near(below, (0, 0, 255), 60), (above, below)


def test_a_phone_with_one_camera_at_a_time_is_flipped(page, weir, keys):
    """Front and back in turn. A slate is sent until the other camera is open, and no frame is lost."""
    with standing_in(page, PHONE):
        open_page(page, weir, "phone", keys["guest"])
    assert page.evaluate("document.querySelector('#stage').dataset.mirrored") == "true"
    start(page)
    for camera, side in (("fake_device_2", "environment"), ("fake_device_0", "user")):
        page.evaluate("window.asked = []")
        press(page, "flip")
        page.wait(f"{LABEL} === '{camera}'")
        assert page.evaluate("window.asked") == [[side, True], [side, False]]
        page.wait(f"document.querySelector('#stage').dataset.mirrored === '{str(side == 'user').lower()}'")
        assert not page.evaluate("document.querySelector('#problem').checkVisibility()")
        more_frames(weir, "phone", 20)
    stop(page)
    assert page.errors == []
    movie = weir.only_recording("phone")
    came = weir.stream("phone")["received"]["videoFrames"]
    errors, _ = packets.decode(movie)
    assert not errors, errors
    assert len(packets.probe(movie)["video"]) == came
    assert sizes(movie) == {"640,360"}


@pytest.fixture
def showing():
    """A browser that shows a tab of its own in place of a screen, with its audio."""
    usual = ("--autoplay-policy=no-user-gesture-required", "--auto-select-tab-capture-source-by-title=Shown", CAMERAS)
    with browsers.chromium(*usual, without=("--mute-audio",)) as browser:
        browser.allow("audioCapture", "videoCapture")
        browser.open_tab(TAB)
        # Behind another tab, a page may not be loaded to its end.
        browser.call("Page.bringToFront")
        yield browser


def test_a_screen_is_shown_with_its_audio(showing, weir, keys):
    """Its picture takes the place of the camera's. Its audio is mixed with the microphone's, which goes on."""
    browser = showing
    with standing_in(browser, TONE % [0.1, 0.1]):
        open_page(browser, weir, "screen", keys["guest"], copy=False)
    start(browser)
    more_frames(weir, "screen", 40)
    before = browser.evaluate(NOW)
    press(browser, "screen")
    browser.wait(f"{LABEL}.startsWith('web-contents-media-stream')")
    # In a tab that is not seen each click takes three seconds.
    browser.call("Page.bringToFront")
    shown = browser.evaluate(NOW)
    browser.evaluate("new Promise((done) => setTimeout(done, 1500))")
    least = 4 * (browser.evaluate(NOW) - shown) - 2
    press(browser, "screen")
    browser.wait(f"{LABEL}.startsWith('fake_device')")
    most = 4 * (browser.evaluate(NOW) - before) + 2
    more_frames(weir, "screen", 40)
    stop(browser)
    # The page is idle at once, and its last request is under way: with the browser it would end, and the server would wait for the
    # publisher's return.
    movie = weir.only_recording("screen")
    assert browser.errors == []
    leave(browser)
    errors, _ = packets.decode(movie)
    assert not errors, errors
    # In quarters of a second, by the page's clock.
    assert least <= longest([near(colour, (255, 0, 255), 60) for colour in colours(movie)]) <= most
    levels = loudness(movie)[1:-1]
    assert least <= longest([level > 20_000 for level in levels]) <= most, levels
    assert min(levels) > 1500 and sum(level < 8000 for level in levels) >= 2 * 4, levels


def button(text: str) -> str:
    """An expression for the button of the recording with this text, where it is shown."""
    return f"[...document.querySelectorAll('#recording-buttons button')].find((b) => b.checkVisibility() && b.innerText === '{text}')"


def test_a_key_that_may_record_starts_and_stops_the_recording(page, weir, keys):
    """It is no administrator's."""
    state = "document.querySelector('#recording-state').textContent"
    open_page(page, weir, "scene", keys["director"])
    start(page)
    page.wait(f"{state} === 'Recording' && {button('Stop')} !== undefined")
    page.click(button("Stop"))
    weir.wait(lambda: weir.stream("scene")["recording"]["state"] == "completed", 20, "the end of the recording")
    page.wait(f"{button('Record')} !== undefined")
    page.click(button("Record"))
    weir.wait(lambda: weir.stream("scene")["recording"]["state"] == "running", 20, "another recording")
    page.wait(f"{state} === 'Recording'")
    assert page.evaluate("document.querySelector('#recording-reason').hidden")
    stop(page)
    weir.wait(lambda: len([r for r in weir.recordings_of("scene") if r["state"] == "completed"]) == 2, 20, "two recordings")


def test_a_key_that_may_only_publish_is_refused_and_offered_nothing_from_then_on(page, weir, keys):
    open_page(page, weir, "guest", keys["guest"])
    start(page)
    page.wait(f"{button('Stop')} !== undefined")
    page.click(button("Stop"))
    page.wait("document.querySelector('#recording-reason').textContent.includes('not control the recording')")
    page.evaluate("new Promise((done) => setTimeout(done, 2500))")
    assert page.evaluate(f"{button('Stop')} === undefined && {button('Record')} === undefined")
    assert weir.stream("guest")["recording"]["state"] == "running"
    stop(page)


def test_nobody_is_offered_what_no_key_may(page, start_shared, canary):
    """Of a server with a publish key alone, recordings are controlled by the commands of its machine."""
    weir = start_shared("--webrtc", "0.0.0.0:0", "--publish-key", f"{canary}-only", listeners=("http", "rtmp", "webrtc"))
    weir.secrets += [canary]
    open_page(page, weir, "plain", f"{canary}-only")
    start(page)
    page.wait("document.querySelector('#recording-state').textContent === 'Recording'")
    assert page.evaluate("[...document.querySelectorAll('#recording-buttons button')].every((b) => !b.checkVisibility())")
    stop(page)
