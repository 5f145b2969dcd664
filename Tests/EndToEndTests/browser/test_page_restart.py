"""The watch page during a restart and after a crash of the server: it continues without a reload."""

import os
import signal

import pytest

from harness.publishers import Returning
from watching import leave, state, watch

#: Shown since the restart, at 30 a second: many more than were on their way before.
FRAMES = 90
MARK = "window.neverReloaded = true"


ALL = [(browser, way, end) for browser in ("chromium", "firefox") for way in ("mse", "hls") for end in ("SIGTERM", "SIGKILL")]
FEW = [("chromium", "mse", "SIGKILL"), ("firefox", "hls", "SIGTERM")]


@pytest.mark.parametrize(("browser", "way", "end"), ALL if os.environ.get("WEIR_FAULTS") else FEW, indirect=["browser"])
def test_the_page_plays_on_over_a_restart(browser, way, end, supervise):
    service = supervise("--segment-duration", "500ms")
    publisher = Returning("loop", f"{service.rtmp}/live/cam")
    try:
        epoch = service.epoch("cam")
        watch(browser, service, "cam", f"?player={way}")
        browser.evaluate(MARK)
        before = state(browser)
        service.process.send_signal(signal.Signals[end])
        service.wait_ready(2)
        # Seconds of media, not of the time axis: numbers that the crashed server may have used are left empty there.
        browser.wait(
            f"document.querySelector('#stage').dataset.phase === 'playing'"
            f" && document.querySelector('#video').getVideoPlaybackQuality().totalVideoFrames > {before['frames'] + FRAMES}", 40)
        after = state(browser)
        assert browser.evaluate("window.neverReloaded") is True
        assert service.epoch("cam") == epoch
        assert after["error"] is None and after["time"] > before["time"] + 0.9 * FRAMES / 30, (before, after)
        leave(browser)
    finally:
        publisher.stop()
