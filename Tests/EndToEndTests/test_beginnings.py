"""How soon a stream can be watched: playlists with the first part if the interval of key frames is known, and their effect
on players without support for parts."""

import concurrent.futures
import contextlib
import datetime
import re
import threading
import time

import pytest

from harness import amf, flv, hls, http, llhls, publishers, scripts, tools
from harness.rawrtmp import RawRTMP

NAME = "cam"


def since_the_first_frame(playlist: str) -> float:
    """Seconds until now from the date of its first segment."""
    began = re.search("^#EXT-X-PROGRAM-DATE-TIME:(.*)$", playlist, re.M)[1]
    return (datetime.datetime.now(datetime.timezone.utc) - datetime.datetime.fromisoformat(began)).total_seconds()


def begins(weir, name: str, go_on=lambda: None) -> tuple[llhls.Playlist, bool, float]:
    """Waits for the multivariant playlist, then for the first part and for the whole ordinary playlist; in between `go_on` may send
    what that needs. Returns the playlist with parts, whether the ordinary one was still awaited when that came, and how many seconds
    after the first frame it came."""
    index = f"{weir.web}/live/{name}/index.m3u8"
    weir.wait(lambda: http.fetch(index).status == 200, 15, "a multivariant playlist", every=0.01)
    top = hls.parse_multivariant(http.fetch(index).text, index)
    assert int(top.variants[0].attributes["BANDWIDTH"]) > 10_000, "a guess by what there is"
    url = top.absolute(top.variants[0].uri)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ordinary = pool.submit(lambda: http.fetch(url).good())
        parts = llhls.parse(http.fetch(f"{url}?_HLS_msn=1&_HLS_part=0").good().text, url)
        awaited, seconds = not ordinary.done(), since_the_first_frame(parts.text)
        go_on()
        whole = ordinary.result(20)
    assert hls.parse_media(whole.text, url).segments, "players that know no parts are given a segment"
    return parts, awaited, seconds


def consists_of_parts(playlist: llhls.Playlist) -> bool:
    return [segment.uri for segment in playlist.segments] == [None] and 1 <= len(playlist.segments[0].parts) <= 6


def test_key_frames_too_far_apart_are_told_of_as_they_are(start):
    """Segments are as long as a GOP while that is possible. After that they begin without a key frame."""
    weir = start("--no-record")
    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO)
    length = max(tag.milliseconds for tag in tags) + 33
    with RawRTMP(weir.rtmp).start(NAME) as client:
        for turn in range(int(24_000 / length) + 1):
            client.play_out(flv.shifted([tag for number, tag in enumerate(tags) if turn == 0 and number < 2
                                         or not tag.is_header and not tag.is_key], turn * length), speed=6)
        [told] = weir.wait(lambda: [warning for warning in weir.stream(NAME)["warnings"] if "key frames" in warning], 15, "the warning")
    assert "segments begin without one" in told


def test_the_test_source_has_a_playlist_with_its_first_part(start):
    for _ in range(5):
        weir = start("--test-pattern", "demo", "--no-record")
        parts, awaited, seconds = begins(weir, "demo")
        # The source waits for nobody: what this test read later than that says nothing, and another server begins anew.
        if seconds < 1 or (consists_of_parts(parts) and awaited):
            break
        weir.stop()
    assert consists_of_parts(parts) and awaited


def seen_once(weir) -> None:
    """A publication that shows how far apart the key frames of the name are."""
    publishers.ffmpeg("short", f"{weir.rtmp}/live/{NAME}", options=("-t", "2.5")).wait(30)
    weir.wait_state(NAME, "ended")


@contextlib.contextmanager
def begun(weir):
    """A publication of which nothing has been sent that comes after the first 0.9 s: the first segment stays in the making, however
    long a test takes. Yields a function that sends two more seconds."""
    tags = scripts.tags_of("short")
    with RawRTMP(weir.rtmp).start(NAME) as client:
        client.play_out([tag for tag in tags if tag.milliseconds < 900])
        yield lambda: client.play_out([tag for tag in tags if 900 <= tag.milliseconds < 3000])
        client.finish()


def test_a_name_seen_before_has_a_playlist_with_its_first_part(start):
    weir = start("--no-record")
    seen_once(weir)
    old = http.fetch(f"{weir.web}/live/{NAME}/index.m3u8").good().text
    with begun(weir) as go_on:
        weir.wait(lambda: http.fetch(f"{weir.web}/live/{NAME}/index.m3u8").text != old, 10, "the new epoch", every=0.01)
        parts, *_ = begins(weir, NAME, go_on)
    assert consists_of_parts(parts)


def first_list(weir, name: str, before: str = "") -> tuple[str, llhls.Playlist, float]:
    """Waits as a player that may start with parts. Returns the address of its media playlist, which is not that of the multivariant
    playlist `before`, the list, and how many seconds after the first frame it came."""
    index = f"{weir.web}/live/{name}/index.m3u8?start=parts"

    def multivariant():
        answer = http.fetch(index, timeout=20)
        return answer.text if answer.status == 200 and answer.text != before else None

    top = hls.parse_multivariant(weir.wait(multivariant, 15, "a multivariant playlist", every=0.01), index)
    url = top.absolute(top.variants[0].uri)
    text = http.fetch(url, timeout=20).good().text
    return url, llhls.parse(text, url), since_the_first_frame(text)


def test_who_starts_with_parts_has_them_when_a_name_is_published_again(start):
    """The first time nobody knows how far apart key frames are: the first list has a whole segment, with the query and without.
    The second time it has a part, for who asks for it. All others wait for a segment, and end up with the same list."""
    weir = start("--no-record")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/{NAME}", options=("-t", "2.5"))
    url, unknown, _ = first_list(weir, NAME)
    assert "start=parts" not in url and unknown.segments[0].uri, "as today"
    publisher.wait(20)
    weir.wait_state(NAME, "ended")
    index = f"{weir.web}/live/{NAME}/index.m3u8"
    before = http.fetch(index).good().text
    with begun(weir) as go_on:
        url, early, _ = first_list(weir, NAME, before)
        assert url.endswith("/index.m3u8?start=parts") and consists_of_parts(early)
        assert llhls.judge(early) == []
        assert "start=parts" not in http.fetch(index).good().text, "for others it is as it was"
        plain = url.removesuffix("?start=parts")
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            ordinary = pool.submit(lambda: http.fetch(plain, timeout=20).good().text)
            go_on()
            whole = hls.parse_media(ordinary.result(20), plain)
        assert whole.segments and hls.check_media(whole) == []
        later = llhls.parse(http.fetch(url).good().text, url)
        assert later.segments[0].uri and later.target == early.target and llhls.judge(later) == []
        assert http.fetch(f"{index}?start=parts").good().text == http.fetch(index).good().text


def test_an_announced_distance_of_key_frames_counts_from_the_first_publication_on(start):
    weir = start("--no-record")
    tags = scripts.tags_of("short")
    told = flv.Tag(flv.DATA, 0, amf.encode("onMetaData", {"videocodecid": 7, "audiocodecid": 10, "videokeyframe_frequency": 2}))
    with RawRTMP(weir.rtmp).start(NAME) as client:
        sending = threading.Thread(target=client.play_out, args=([told] + flv.only(tags, flv.VIDEO, flv.AUDIO),),
                                   kwargs={"until": 0.9})
        sending.start()
        try:
            url, early, _ = first_list(weir, NAME)
            assert weir.stream(NAME)["gopSeconds"] is None, "no second key frame has come"
        finally:
            sending.join()
        client.finish()
    assert url.endswith("?start=parts") and consists_of_parts(early) and early.target == 2


def first_fragment(weir, name: str) -> float:
    """Seconds from the last byte of the first key frame to the first fragment in a waiting response for `stream.mp4`."""

    def wait() -> float:
        stream, data = http.Stream(f"{weir.web}/live/{name}/stream.mp4"), b""
        while b"mdat" not in data:
            data += stream.answer.read1(65536)
        at = time.monotonic()
        stream.close()
        return at

    tags = flv.only(scripts.tags_of("h264-30"), flv.VIDEO, flv.AUDIO)
    key = next(number for number, tag in enumerate(tags) if tag.is_key)
    with concurrent.futures.ThreadPoolExecutor(1) as pool, RawRTMP(weir.rtmp).start(name) as client:
        client.play_out(tags[:key])
        arrival = pool.submit(wait)
        time.sleep(0.2)
        began = time.monotonic()
        client.play_out(tags[key:], until=1)
        client.finish()
        return arrival.result(10) - began


@pytest.mark.quiet
def test_the_first_frame_and_the_first_part_come_at_once(start, record_property):
    weir = start("--no-record")
    found = first_fragment(weir, "begin")
    record_property("figure", f"stream.mp4: the first fragment {found * 1000:.0f} ms after the first key frame")
    assert found <= 0.1
    seen_once(weir)
    before = http.fetch(f"{weir.web}/live/{NAME}/index.m3u8").good().text
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/{NAME}")
    try:
        _, _, seconds = first_list(weir, NAME, before)
    finally:
        publisher.kill()
    record_property("figure", f"a name published again: a list with a part {seconds:.2f} s after its first frame")
    assert seconds <= 0.3


@pytest.mark.parametrize("layout", ["interleaved", "separate"])
def test_players_that_know_no_parts_play_a_stream_from_its_first_part_on(start, layout):
    weir = start("--no-record", "--target-duration", "2", "--hls-layout", layout)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        index = f"{weir.web}/live/{NAME}/index.m3u8"
        weir.wait(lambda: http.fetch(index).status == 200, 15, "a multivariant playlist", every=0.01)
        probe = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", index)
        assert set(probe.stdout.split()) >= {"h264", "aac"}
        frames = tools.run(
            tools.FFMPEG, "-v", "error", "-i", index, "-t", "3", "-map", "0:v", "-f", "framehash", "-")
        assert frames.stderr == ""
        numbers = [int(line.split(",")[1]) for line in frames.stdout.splitlines() if not line.startswith("#")]
        # Media time begins with the audio, which may come up to one video frame earlier.
        assert numbers == list(range(numbers[0], 90)) and numbers[0] <= 1
    finally:
        publisher.kill()
