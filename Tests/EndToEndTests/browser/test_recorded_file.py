"""A finished recording is an ordinary MP4: a plain <video> of Chromium plays it, and seeks by byte ranges."""

import pytest

import watching
from harness import publishers
from harness.fragments import sample_counts

MAKE = """new Promise((resume, fail) => {
  const video = document.createElement("video");
  video.id = "plain";
  video.muted = true;
  video.addEventListener("loadedmetadata", () => resume(
    { duration: video.duration, width: video.videoWidth, height: video.videoHeight }));
  video.addEventListener("error", () => fail(new Error(video.error.message)));
  video.src = SOURCE;
  document.body.prepend(video);
})"""

#: Seeks, and gives the position once a frame is shown there.
SEEK = """new Promise((resume, fail) => {
  const video = document.querySelector("#plain");
  video.addEventListener("error", () => fail(new Error(video.error.message)), { once: true });
  // A frame from before the seek may be shown late.
  let shown = null;
  const note = (_, frame) => { shown = frame.mediaTime; video.requestVideoFrameCallback(note); };
  video.requestVideoFrameCallback(note);
  const settle = (frames) => frames > 0 || shown === null
    ? requestAnimationFrame(() => settle(frames - 1)) : resume({ time: video.currentTime, shown });
  video.addEventListener("seeked", () => settle(2), { once: true });
  video.currentTime = PLACE;
})"""


@pytest.fixture(scope="module")
def recorded(start_shared):
    """A server with one finished recording, its address and its file."""
    weir = start_shared()
    publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", rate=8).wait(60)
    told = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["url"]), None), 40, "it is finished")
    return weir, told["url"], weir.recordings / "cam" / told["file"]


def test_a_plain_video_element_plays_it_and_seeks_in_it(chromium, recorded):
    weir, url, file = recorded
    chromium.open(f"{weir.web}/recordings")
    made = chromium.evaluate(MAKE.replace("SOURCE", repr(url)))
    frames = sample_counts(file)[1]
    assert made["duration"] == pytest.approx(frames / 30, abs=0.1)
    assert made["width"] > 0 and made["height"] > 0
    seekable = "((r) => r.length === 1 ? [r.start(0), r.end(0)] : null)(document.querySelector('#plain').seekable)"
    assert chromium.evaluate(seekable) == [0, made["duration"]]
    end = made["duration"]
    for place in (0.75 * end, 0.5 * end + 0.01, 0.1 * end, end - 1.0):
        there = chromium.evaluate(SEEK.replace("PLACE", str(place)))
        assert there["time"] == pytest.approx(place, abs=0.001)
        # The exact frame of that time is shown, not the key frame before it.
        assert there["shown"] == pytest.approx(place, abs=0.04), there
    chromium.evaluate("document.querySelector('#plain').play()")
    chromium.wait("document.querySelector('#plain').ended")
    quality = chromium.evaluate(
        "((q) => [q.totalVideoFrames, q.corruptedVideoFrames])(document.querySelector('#plain').getVideoPlaybackQuality())")
    assert quality[0] >= 25 and quality[1] == 0
    assert chromium.evaluate("document.querySelector('#plain').error") is None
    assert chromium.evaluate("document.querySelector('#plain').webkitAudioDecodedByteCount") > 0
    assert chromium.errors == []
    watching.leave(chromium)
