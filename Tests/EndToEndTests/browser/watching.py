"""Queries of the tests to a watch page."""

import time

#: State of the player: seconds, frames, audio, and the messages of the page.
#: Seconds of media that were played, without those that were jumped over.
PLAYED = """(({ played }) => Array.from({ length: played.length }, (_, n) => played.end(n) - played.start(n)).reduce(
  (sum, seconds) => sum + seconds, 0))(document.querySelector("#video"))"""

STATE = """(() => {
  const video = document.querySelector("#video");
  const quality = video.getVideoPlaybackQuality();
  const { buffered } = video;
  return {
    buffered: Array.from({ length: buffered.length }, (_, n) => [buffered.start(n), buffered.end(n)]), seeking: video.seeking,
    time: video.currentTime, played: %s, paused: video.paused, muted: video.muted, ready: video.readyState,
    frames: quality.totalVideoFrames, dropped: quality.droppedVideoFrames,
    width: video.videoWidth, height: video.videoHeight,
    audioBytes: video.webkitAudioDecodedByteCount ?? null,
    error: video.error?.message ?? null, source: video.currentSrc,
    phase: document.querySelector("#stage").dataset.phase,
    message: document.querySelector("#message").hidden ? "" : document.querySelector("#message-title").textContent,
    badge: document.querySelector("#badge").textContent,
  };
})()""" % PLAYED

#: Values of the details panel by label, as they are at this moment: the panel is written when it opens, and then twice a second.
DETAILS = """(async () => {
  const panel = document.querySelector("#details"), info = document.querySelector("#info");
  const rows = () => [...document.querySelectorAll("#figures > div")].map(
    (row) => [row.querySelector("dt").textContent, row.querySelector("dd").textContent]);
  if (!panel.hidden) info.click();
  info.click();
  while (panel.hidden || rows().length === 0) await new Promise((resume) => setTimeout(resume, 20));
  return Object.fromEntries(rows());
})()"""

#: Loudest sample in a second of Firefox's output: recorded from the element and decoded again. 0 is silence.
FIREFOX_LOUDNESS = """(async () => {
  const stream = document.querySelector("#video").mozCaptureStream();
  const recorder = new MediaRecorder(new MediaStream(stream.getAudioTracks()));
  const parts = [];
  recorder.ondataavailable = (event) => parts.push(event.data);
  const stopped = new Promise((resume) => { recorder.onstop = resume; });
  recorder.start();
  await new Promise((resume) => setTimeout(resume, 1000));
  recorder.stop();
  await stopped;
  const decoded = await new OfflineAudioContext(1, 48000, 48000).decodeAudioData(await new Blob(parts).arrayBuffer());
  return decoded.getChannelData(0).reduce((loudest, sample) => Math.max(loudest, Math.abs(sample)), 0);
})()"""


def state(browser):
    return browser.evaluate(STATE)


def wait_phase(browser, phase, seconds=40):
    try:
        browser.wait(f"document.querySelector('#stage')?.dataset.phase === {phase!r}", seconds)
    except AssertionError as error:
        text = browser.evaluate("document.body.innerText")[:600]
        raise AssertionError(f"{error}; {state(browser)}; {text}") from None
    return state(browser)


def watch(browser, server, name, query=""):
    """Opens the page of a stream and waits until it plays."""
    browser.open(f"{server.web}/watch/{name}{query}")
    return wait_phase(browser, "playing")


def latency(browser):
    """Seconds from the publisher to the screen, as the details panel tells them once it knows the server's clock."""
    browser.evaluate(DETAILS)
    return browser.wait("""(() => {
      const row = [...document.querySelectorAll("#figures > div")].find((row) => row.querySelector("dt").textContent === "Latency");
      return /^[0-9.]+ s$/.test(row.querySelector("dd").textContent) && Number.parseFloat(row.querySelector("dd").textContent);
    })()""")


def play_on(browser, seconds, within=40):
    """Waits until so many more seconds of media were played, and returns the state before."""
    before = state(browser)
    browser.wait(f"document.querySelector('#video').currentTime > {before['time']} + {seconds}", within)
    return before


def play_through(browser, seconds, within=40):
    """Waits until so many more seconds of media were played: where a player jumps to the live edge nothing of that is. Returns the
    states before and after."""
    before = state(browser)
    browser.wait(f"{PLAYED} > {before['played']} + {seconds}", within)
    return before, state(browser)


def leave(browser):
    """Ends all activity of a page after its test."""
    browser.open("about:blank")


#: A second click that comes sooner was made before the question could be read.
READ_SECONDS = 0.6


def mean_it(browser, button):
    """Clicks a button that needs a confirmation, twice."""
    browser.click(button)
    browser.wait(f"{button}.textContent === 'Really?'")
    confirm(browser, button, lambda: browser.click(button))


def confirm(browser, button, press):
    """Presses a button that asks, by `press`. A press behind the question's four seconds asks anew, where the browser was held up."""
    for _ in range(3):
        began = time.monotonic()
        time.sleep(READ_SECONDS)
        press()
        if not browser.evaluate(f"{button}?.dataset.confirming === 'true'"):
            return
        assert time.monotonic() - began > 3, f"{button} does not take the confirmation"
    raise AssertionError(f"{button} was confirmed too late three times")


def distance(browser):
    """Seconds behind the live edge, as the button shows them."""
    text = browser.evaluate("document.querySelector('#distance').textContent")
    minutes, _, seconds = text.strip("−").removesuffix(" s").replace(",", ".").rpartition(":")
    return int(minutes or 0) * 60 + float(seconds)


def seek_to(browser, seconds_behind):
    """Drags the bar to a position this far behind its end. Returns the position in seconds of media."""
    return browser.evaluate(f"""(() => {{
      const bar = document.querySelector("#seek");
      bar.value = Number(bar.max) - {seconds_behind};
      for (const kind of ["input", "change"]) bar.dispatchEvent(new Event(kind, {{ bubbles: true }}));
      return Number(bar.value);
    }})()""")


#: The time that is burned into the shown frame of the test pattern, in milliseconds since 1970; null if it cannot be
#: read. Letters have five by seven dots, each dot half a unit. The layout is that of TestFrame.swift.
_READ_TIMECODE = """
const shapes = {
  "0": [14, 17, 19, 21, 25, 17, 14], "1": [4, 12, 4, 4, 4, 4, 14], "2": [14, 17, 1, 6, 8, 16, 31],
  "3": [30, 1, 1, 14, 1, 1, 30], "4": [2, 6, 10, 18, 31, 2, 2], "5": [31, 16, 30, 1, 1, 17, 14],
  "6": [6, 8, 16, 30, 17, 17, 14], "7": [31, 1, 2, 4, 8, 8, 8], "8": [14, 17, 17, 14, 17, 17, 14],
  "9": [14, 17, 17, 15, 1, 2, 12], ":": [0, 4, 4, 0, 4, 4, 0], ".": [0, 0, 0, 0, 0, 12, 12], "-": [0, 0, 0, 31, 0, 0, 0],
};
const unit = 16, dot = unit / 2, canvas = document.createElement("canvas");
canvas.width = 13 * 6 * dot;
canvas.height = 12 * unit;
const pen = canvas.getContext("2d", { willReadFrequently: true });
const readTimecode = (video) => {
  if (video.videoWidth !== 1280) return null;
  pen.drawImage(video, 4 * unit, 30 * unit, canvas.width, canvas.height, 0, 0, canvas.width, canvas.height);
  const { data } = pen.getImageData(0, 0, canvas.width, canvas.height);
  const line = (top, length) => Array.from({ length }, (_, n) => {
    const seen = Array.from({ length: 7 }, (_, row) => Array.from({ length: 5 }, (_, column) => {
      const x = (n * 6 + column) * dot + dot / 2, y = top + row * dot + dot / 2;
      return data[4 * (y * canvas.width + x) + 1] > 120 ? 2 ** (4 - column) : 0;
    }).reduce((a, b) => a + b));
    return Object.keys(shapes).find((letter) => shapes[letter].every((bits, row) => bits === seen[row])) ?? "?";
  }).join("");
  const read = Date.parse(`${line(5 * unit, 10)}T${line(0, 12)}Z`);
  return Number.isNaN(read) ? null : read;
};
const video = document.querySelector("#video");
"""

#: {read, position, now}: the burned-in time, the time that the page shows for it, and the server's time, in milliseconds
#: since 1970, at one presented frame.
SHOWN_TIME = """(async () => {
  %s
  const { ServerClock } = await import("/web/api/api.js");
  const clock = new ServerClock();
  await clock.measure();
  for (let tries = 0; tries < 50; tries += 1) {
    await new Promise((resume) => video.requestVideoFrameCallback(resume));
    const read = readTimecode(video);
    if (read === null) continue;
    video.dispatchEvent(new Event("timeupdate"));
    const position = document.querySelector("#position");
    return { read, position: Date.parse(position.dateTime), text: position.textContent, now: clock.now() };
  }
  return null;
})()""" % _READ_TIMECODE

#: Sorted list of seconds from the burned-in time of frames to their display, by the server's clock, within three seconds.
GLASS_TO_GLASS = """(async () => {
  %s
  const { ServerClock } = await import("/web/api/api.js");
  const clock = new ServerClock();
  await clock.measure(5);
  const delays = [];
  const until = performance.now() + 3000;
  while (performance.now() < until) {
    const shown = await new Promise((resume) => video.requestVideoFrameCallback((now, frame) => resume(frame.expectedDisplayTime)));
    const read = readTimecode(video);
    if (read !== null) delays.push((clock.now() - performance.now() + shown - read) / 1000);
    await new Promise((resume) => setTimeout(resume, 80));
  }
  return delays.sort((a, b) => a - b);
})()""" % _READ_TIMECODE
