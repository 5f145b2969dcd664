"""The watch page plays through: publisher, fallback, and a publisher of another size. No reload."""

import json

import pytest

import watching
from harness import publishers

ENTRY = {"segmentDuration": "500ms", "partDuration": "50ms", "targetDuration": 1, "end": "never", "fallback": "test"}
WIDTH = "document.querySelector('#video').videoWidth"


@pytest.mark.parametrize("way", ["mse", pytest.param("hls", marks=pytest.mark.long)])
def test_the_page_plays_through_a_fallback(chromium, start, tmp_path, way):
    path = tmp_path / "weir.yaml"
    path.write_text(json.dumps({"streams": {"cam": ENTRY}}))
    weir = start("--config", path, "--no-record")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait(lambda: (weir.stream("cam") or {}).get("onAir") == "publisher", 15, "a publisher on air")
        chromium.open(f"{weir.web}/watch/cam?player={way}")
        chromium.wait(f"{WIDTH} === 320", 20)
        watching.wait_phase(chromium, "playing")
        chromium.evaluate("window.neverReloaded = true")
        publisher.kill()
        chromium.wait(f"{WIDTH} === 1280", 20)
        publisher = publishers.ffmpeg("small", f"{weir.rtmp}/live/cam", loop=-1)
        chromium.wait(f"{WIDTH} === 256", 20)
        watching.wait_phase(chromium, "playing")
        before = chromium.evaluate("document.querySelector('#video').currentTime")
        chromium.wait(f"document.querySelector('#video').currentTime > {before + 1}", 20)
        assert chromium.evaluate("window.neverReloaded") is True
    finally:
        publisher.kill()
        watching.leave(chromium)
