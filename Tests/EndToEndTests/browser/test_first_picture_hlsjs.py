"""How soon hls.js, which has asked before the stream began, shows its first frame, where the distance of key frames is known. It is
no part of this repository: HLSJS names its built script."""

import os
import pathlib
import statistics
import threading
import time

import pytest

import watching
from harness import flv, scripts
from harness.rawrtmp import RawRTMP

SCRIPT = pathlib.Path(os.environ.get("HLSJS") or "/nonexistent")
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="HLSJS names no built script of hls.js")

TRIES = 3
GOP_SECONDS = 2

#: A player as an application has it that waits for a stream: it asks ten times a second. Its other settings are its own.
PLAYER = """((url, lowLatencyMode) => {
  const video = document.createElement("video");
  video.muted = true;
  document.body.append(video);
  Object.assign(window, { shownAt: 0, failures: [], asked: 0 });
  video.requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
  const errorRetry = { maxNumRetry: 1000, retryDelayMs: 100, maxRetryDelayMs: 100, shouldRetry: () => true };
  const hls = new Hls({
    lowLatencyMode, manifestLoadPolicy: { default: { ...Hls.DefaultConfig.manifestLoadPolicy.default, errorRetry } },
  });
  hls.on(Hls.Events.ERROR, (_, data) => { window.failures.push([data.details, data.fatal]); });
  hls.attachMedia(video);
  hls.loadSource(url);
  video.play();
  window.hls = hls;
})"""


def first_picture(page, weir, name, query, low_latency):
    """Seconds from the publisher's first key frame to the first frame of hls.js, and what it reported as errors until then."""
    page.open(f"{weir.web}/healthz")
    page.evaluate(SCRIPT.read_text() + "; null")
    page.evaluate(f"{PLAYER}('{weir.web}/live/{name}/index.m3u8{query}', {str(low_latency).lower()})")
    page.wait("performance.getEntriesByType('resource').length >= 3", 10)
    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    key = next(number for number, tag in enumerate(tags) if tag.is_key)
    with RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags[:key])
        began = time.time()
        sending = threading.Thread(target=client.play_out, args=(tags[key:],), kwargs={"until": 7})
        sending.start()
        try:
            page.wait("window.shownAt > 0", 20)
            seconds, failures = page.evaluate("window.shownAt") - began, page.evaluate("window.failures")
        finally:
            sending.join()
        client.finish()
    watching.leave(page)
    return seconds, failures


@pytest.mark.parametrize("low_latency", [True, False], ids=["low-latency", "segments"])
@pytest.mark.parametrize("query", ["", "?start=parts"], ids=["whole-segment", "parts"])
def test_hlsjs_that_waits_shows_its_first_frame(page, start, record_property, query, low_latency):
    weir = start("--no-record", "--target-duration", str(GOP_SECONDS))
    found = [first_picture(page, weir, f"show{number}", query, low_latency) for number in range(TRIES)]
    seconds = [one for one, _ in found]
    record_property(
        "figure", f"hls.js, {'low latency' if low_latency else 'whole segments'}, index.m3u8{query}: first frame after "
        f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})")
    print(found)
