"""How soon a page that waits for a stream shows its first frame, where the distance of key frames is known, and how it goes on
where they prove to be farther apart."""

import threading
import time

import pytest

import watching
from harness import flv, hls, http, llhls, scripts
from harness.rawrtmp import RawRTMP

#: From the first frame of the publisher to the first one that is shown.
PICTURE_SECONDS = 0.8

#: From the response that tells of the stream to the request for its list. What was heard before the stream must not delay it.
ASKS_SECONDS = 0.3
ASKED_AFTER = """(() => {
  const entries = performance.getEntriesByType("resource"), last = (text) => entries.filter((e) => e.name.includes(text));
  const asked = last("/index.m3u8?start=parts").filter((e) => !e.name.includes("/av/")).at(-1).startTime;
  return asked - Math.max(...last("/status.json").map((e) => e.responseEnd).filter((at) => at <= asked));
})()"""

#: Notes when the video shows its first frame.
NOTE_FIRST_FRAME = """(() => {
  window.shownAt = 0;
  document.querySelector("#video").requestVideoFrameCallback(() => { window.shownAt = Date.now() / 1000; });
})()"""


def first_picture(page, weir, name, player):
    """Seconds from the publisher's first key frame to the first frame on a page that has waited for the stream, from the response
    that told of the stream to the request for its list, and the playlists that the page has asked for three seconds later."""
    page.open(f"{weir.web}/watch/{name}?player={player}")
    watching.wait_phase(page, "notStarted")
    page.evaluate(NOTE_FIRST_FRAME)
    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    key = next(number for number, tag in enumerate(tags) if tag.is_key)
    with RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags[:key])
        began = time.time()
        sending = threading.Thread(target=client.play_out, args=(tags[key:],), kwargs={"until": 3})
        sending.start()
        try:
            page.wait("window.shownAt > 0", 20)
            seconds, asked = page.evaluate("window.shownAt") - began, page.evaluate(ASKED_AFTER) / 1000
        finally:
            sending.join()
        if player == "hls":
            page.wait("performance.getEntriesByType('resource').some((e) => e.name.includes('_HLS_msn'))")
        lists = page.evaluate(
            "performance.getEntriesByType('resource').map((e) => e.name).filter((name) => name.includes('.m3u8'))")
        client.finish()
    watching.leave(page)
    return seconds, asked, lists


def judge_lists(lists, player):
    assert any(address.endswith("/index.m3u8?start=parts") for address in lists), lists
    if player == "hls":
        assert any(address.endswith("/av/index.m3u8?start=parts") for address in lists), lists
        later = [address for address in lists if "_HLS_msn" in address]
        assert later and not any("start" in address for address in later), "caches hold one list for all players"


@pytest.mark.quiet
@pytest.mark.parametrize("player", ["mse", pytest.param("hls", marks=pytest.mark.long)])
def test_a_page_that_waits_for_a_stream_shows_its_first_frame_soon(page, start, record_property, player):
    weir = start("--no-record", "--target-duration", "2")
    seconds, asked, lists = first_picture(page, weir, "show", player)
    judge_lists(lists, player)
    record_property("figure", f"a waiting page, {player}: first frame shown after {seconds:.2f} s")
    assert seconds <= PICTURE_SECONDS, f"the list was asked for after {asked} s"
    assert asked <= ASKS_SECONDS


def test_a_page_that_waits_for_a_stream_asks_for_the_list_of_parts_once(page, start):
    judge_lists(first_picture(page, start("--no-record", "--target-duration", "2"), "show", "hls")[2], "hls")


@pytest.fixture
def known(start, tmp_path):
    """A server that knows a name, from the process before it, as one with key frames 2 s apart."""
    (tmp_path / "state").mkdir()
    weir = start("--no-record", "--state", tmp_path / "state")
    with RawRTMP(weir.rtmp).start("cam") as client:
        client.play_out(scripts.tags_of("h264-30"), speed=4)
        client.finish()
    weir.wait_state("cam", "ended")
    weir.stop()
    return start("--no-record", "--state", tmp_path / "state")


@pytest.mark.parametrize("player", ["hls", pytest.param("mse", marks=pytest.mark.long)])
def test_a_gop_that_is_longer_than_known_is_cut_and_the_page_goes_on(page, known, player):
    """The name is published again with key frames 4 s apart. The list comes with the first part. Segments are cut at the
    target, without a key frame, which is told; no part is longer than it may be, and the page plays on across the cuts."""
    weir = known
    page.open(f"{weir.web}/watch/cam?player={player}")
    watching.wait_phase(page, "notStarted")
    page.evaluate(NOTE_FIRST_FRAME)
    with RawRTMP(weir.rtmp).start("cam") as client:
        index = f"{weir.web}/live/cam/index.m3u8?start=parts"
        sending = threading.Thread(target=client.play_out, args=(scripts.tags_of("gop-4000"),), kwargs={"until": 9})
        sending.start()
        try:
            top = hls.parse_multivariant(http.fetch(index, timeout=20).good().text, index)
            url = top.absolute(top.variants[0].uri)
            assert url.endswith("/index.m3u8?start=parts")
            early = llhls.parse(http.fetch(url).good().text, url)
            assert [segment.uri for segment in early.segments] == [None] and early.target == 2, early.text
            player_of_parts = llhls.Player(url.removesuffix("?start=parts"))
            player_of_parts.play(5)
            page.wait("window.shownAt > 0", 20)
            watching.play_on(page, 1.5)
            warnings = weir.stream("cam")["warnings"]
        finally:
            sending.join()
        client.finish()
    [told] = [warning for warning in warnings if "key frames" in warning]
    assert "segments begin without one" in told
    weir.wait_log("segments begin without one")
    cut = [problem for problem in player_of_parts.problems if problem.startswith("C05")]
    assert cut, "some segments begin without a key frame"
    assert [problem for problem in player_of_parts.problems if problem not in cut] == [], "no part is too long, nothing is missing"
    last = player_of_parts.playlists[-1][1]
    assert last.target == 2 and all(segment.duration < 2.5 for segment in last.segments if segment.uri)
    assert "EXT-X-INDEPENDENT-SEGMENTS" not in last.text
    state = watching.state(page)
    # Also while it waited.
    assert state["error"] is None and page.errors == []
