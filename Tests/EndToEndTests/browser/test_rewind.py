"""The seek bar over the whole programme, and clips in a video element."""

import re

import pytest

import watching
from harness import publishers

LENGTH = "Number(document.querySelector('#seek').max) - Number(document.querySelector('#seek').min)"


@pytest.fixture(scope="module")
def rewound(start_shared):
    """A server with a stream that is much longer than the window."""
    weir = start_shared("--window", "6s", "--rewind", "1h", "--segment-duration", "1s", "--test-pattern", "demo")
    weir.wait_state("demo", "live", seconds=30)
    epoch = re.search(r"^(\w+)/av/index.m3u8$", weir.get("/live/demo/index.m3u8").good().text, re.M)[1]
    weir.wait(lambda: weir.get(f"/live/demo/{epoch}/av/dvr.m3u8").text.count(".m4s") >= 10, 60, "10 s", every=0.2)
    return weir


@pytest.mark.parametrize("way", ["mse", "hls"])
def test_the_bar_reaches_back_beyond_the_window_and_plays_there(chromium, way, rewound):
    watching.watch(chromium, rewound, "demo", f"?player={way}")
    chromium.wait("!document.querySelector('#seek-row').hidden")
    chromium.wait(f"{LENGTH} > 9", 20)
    first = chromium.evaluate("Number(document.querySelector('#seek').min) + 1")
    place = watching.seek_to(chromium, 8)
    chromium.wait(f"document.querySelector('#video').currentTime > {place} + 1", 20)
    shown = chromium.evaluate(watching.SHOWN_TIME)
    assert 6 < (shown["now"] - shown["read"]) / 1000 < 15, f"{shown}"
    # The bar still reaches back to the beginning after segments have left the list.
    length = chromium.evaluate(LENGTH)
    chromium.wait(f"{LENGTH} > {length} + 3", 20)
    assert abs(chromium.evaluate("Number(document.querySelector('#seek').min) + 1") - first) < 0.1
    assert chromium.errors == []
    watching.leave(chromium)


def test_chromium_plays_a_clip_from_its_first_frame_to_its_last(chromium, rewound):
    publishers.ffmpeg("h264-30", rewound.rtmp + "/live/cut", paced=False).wait()
    recording = rewound.wait(
        lambda: next((r for r in rewound.recordings_of("cut") if r["state"] == "completed"), None), 20, "a finished recording")
    chromium.open(f"{rewound.web}/healthz")
    clip = f"/api/v1/recordings/cut/{recording['file']}/clip?from=3.3&to=6.3"
    chromium.evaluate(f"""(() => {{ window.video = document.createElement('video'); video.muted = true;
      video.src = '{clip}'; document.body.append(video); video.play(); }})()""")
    chromium.wait("video.ended", 20)
    assert abs(chromium.evaluate("video.duration") - 3) < 0.04
    assert chromium.evaluate("video.error") is None
    # The frames between the key frame and the first shown one are decoded, too.
    assert chromium.evaluate("video.getVideoPlaybackQuality().totalVideoFrames") >= 80
    watching.leave(chromium)
