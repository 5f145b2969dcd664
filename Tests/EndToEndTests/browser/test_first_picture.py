"""How soon a page that waits for a stream shows its first frame, where the distance of key frames is known."""

import threading
import time

import pytest

import watching
from harness import flv, scripts
from harness.rawrtmp import RawRTMP

#: From the first frame of the publisher to the first one that is shown.
PICTURE_SECONDS = 0.8
#: Other work of the machine delays some. The best shows the delay of server and page; no more are made than it takes.
TRIES = 6

#: Notes when the video shows its first frame.
NOTE_FIRST_FRAME = """(() => {
  window.shownAt = 0;
  document.querySelector("#video").requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
})()"""


def first_picture(page, weir, name, player):
    """Seconds from the publisher's first key frame to the first frame on a page that has waited for the stream, and the playlists
    that the page has asked for four seconds later."""
    page.open(f"{weir.web}/watch/{name}?player={player}")
    watching.wait_phase(page, "notStarted")
    page.evaluate(NOTE_FIRST_FRAME)
    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    key = next(number for number, tag in enumerate(tags) if tag.is_key)
    with RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags[:key])
        began = time.time()
        sending = threading.Thread(target=client.play_out, args=(tags[key:],), kwargs={"until": 4})
        sending.start()
        try:
            page.wait("window.shownAt > 0", 20)
            seconds = page.evaluate("window.shownAt") - began
        finally:
            sending.join()
        lists = page.evaluate(
            "performance.getEntriesByType('resource').map((e) => e.name).filter((name) => name.includes('.m3u8'))")
        client.finish()
    watching.leave(page)
    return seconds, lists


@pytest.mark.parametrize("player", ["mse", "hls"])
def test_a_page_that_waits_for_a_stream_shows_its_first_frame_soon(page, start, record_property, player):
    weir = start("--no-record", "--target-duration", "2")
    found = []
    for number in range(TRIES):
        seconds, lists = first_picture(page, weir, f"show{number}", player)
        assert any(address.endswith("/index.m3u8?start=parts") for address in lists), lists
        if player == "hls":
            assert any(address.endswith("/av/index.m3u8?start=parts") for address in lists), lists
            later = [address for address in lists if "_HLS_msn" in address]
            assert later and not any("start" in address for address in later), "caches hold one list for all players"
        found.append(seconds)
        if seconds <= PICTURE_SECONDS:
            break
    record_property("figure", f"a waiting page, {player}: first frame shown after {min(found):.2f} s of {len(found)}")
    assert min(found) <= PICTURE_SECONDS, found
