"""How soon hls.js, which has asked before the stream began, shows its first frame, where the distance of key frames is known. It is
no part of this repository: HLSJS names its built script."""

import os
import pathlib
import threading
import time

import pytest

import watching
from harness import flv, scripts
from harness.rawrtmp import RawRTMP

SCRIPT = pathlib.Path(os.environ.get("HLSJS") or "/nonexistent")
pytestmark = [pytest.mark.quiet, pytest.mark.long, pytest.mark.skipif(not SCRIPT.is_file(), reason="HLSJS names no built script of hls.js")]

GOP_SECONDS = 2
PICTURE_SECONDS = 0.8

#: A player as an application has it that waits for a stream: it asks ten times a second, past the browser's cache, which may keep
#: a 404 for a second. hls.js has its own settings.
PLAYER = """(async (url, lowLatencyMode) => {
  const video = document.createElement("video");
  video.muted = true;
  document.body.append(video);
  Object.assign(window, { shownAt: 0, failures: [], asked: 0 });
  video.requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
  const hls = new Hls({ lowLatencyMode });
  hls.on(Hls.Events.ERROR, (_, data) => { window.failures.push(data.details); });
  hls.attachMedia(video);
  video.play().catch(() => {});
  for (; !(await fetch(url, { cache: "no-store" })).ok; window.asked += 1) await new Promise((resume) => setTimeout(resume, 100));
  hls.loadSource(url);
})"""


def first_picture(page, weir, name, query, low_latency):
    """Seconds from the publisher's first key frame to the first frame of hls.js; what it has reported as errors; how far it has played
    six seconds after the key frame."""
    page.open(f"{weir.web}/healthz")
    page.evaluate(SCRIPT.read_text() + "; null")
    page.evaluate(f"{PLAYER}('{weir.web}/live/{name}/index.m3u8{query}', {str(low_latency).lower()}); null")
    page.wait("window.asked > 2", 10)
    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    key = next(number for number, tag in enumerate(tags) if tag.is_key)
    with RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags[:key])
        began = time.time()
        sending = threading.Thread(target=client.play_out, args=(tags[key:],), kwargs={"until": 7})
        sending.start()
        try:
            page.wait("window.shownAt > 0", 20)
            time.sleep(max(0, began + 6 - time.time()))
            played = page.evaluate("document.querySelector('video').currentTime")
            seconds, failures = page.evaluate("window.shownAt") - began, page.evaluate("window.failures")
        finally:
            sending.join()
        client.finish()
    watching.leave(page)
    return seconds, failures, played


@pytest.mark.parametrize("low_latency", [True, False], ids=["low-latency", "segments"])
@pytest.mark.parametrize("query", ["", "?start=gap", "?start=parts"], ids=["whole-segment", "gap", "parts"])
def test_hlsjs_that_waits_shows_its_first_frame(page, start, record_property, query, low_latency):
    """With a gap in front it begins at once. Without low latency, and with the list of all others, it begins with the first whole
    segment. A list of parts alone is an empty one to it: it comes later than that, but comes."""
    weir = start("--no-record", "--target-duration", str(GOP_SECONDS))
    most = {"": GOP_SECONDS + PICTURE_SECONDS, "?start=parts": 3 * GOP_SECONDS, "?start=gap": PICTURE_SECONDS if low_latency else 2 * GOP_SECONDS}[query]
    seconds, failures, played = first_picture(page, weir, "show", query, low_latency)
    record_property(
        "figure", f"hls.js, {'low latency' if low_latency else 'whole segments'}, index.m3u8{query}: first frame after {seconds:.2f} s")
    assert seconds <= most
    if query == "?start=parts":
        assert "levelEmptyError" in failures, "docs/playback.md tells of it"
        assert seconds > PICTURE_SECONDS
    if query == "?start=gap" and low_latency:
        assert played > 4.5
