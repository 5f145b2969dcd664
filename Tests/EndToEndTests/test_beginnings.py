"""How soon a stream can be watched: playlists with the first part if the interval of key frames is known, and their effect
on players without support for parts."""

import concurrent.futures
import time

import pytest

from harness import flv, hls, http, llhls, publishers, scripts, tools
from harness.rawrtmp import RawRTMP

NAME = "cam"


def begins(weir, name: str) -> tuple[str, float, llhls.Playlist, float]:
    """Waits for the multivariant playlist, then for the first part and for the whole ordinary playlist. Returns its address,
    the time and text of the playlist with parts, and the time of the ordinary one."""
    index = f"{weir.web}/live/{name}/index.m3u8"
    weir.wait(lambda: http.fetch(index).status == 200, 15, "a multivariant playlist", every=0.01)
    top = hls.parse_multivariant(http.fetch(index).text, index)
    assert int(top.variants[0].attributes["BANDWIDTH"]) > 10_000, "a guess by what there is"
    url = top.absolute(top.variants[0].uri)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        ordinary = pool.submit(lambda: (http.fetch(url).good(), time.monotonic()))
        parts = llhls.parse(http.fetch(f"{url}?_HLS_msn=1&_HLS_part=0").good().text, url)
        at = time.monotonic()
        whole, later = ordinary.result(20)
    assert hls.parse_media(whole.text, url).segments, "players that know no parts are given a segment"
    return index, at, parts, later


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
        [told] = [warning for warning in weir.stream(NAME)["warnings"] if "key frames" in warning]
    assert "segments begin without one" in told


def test_the_test_source_has_a_playlist_with_its_first_part(start, record_property):
    weir = start("--test-pattern", "demo", "--no-record")
    _, at, parts, later = begins(weir, "demo")
    assert consists_of_parts(parts)
    assert later - at > 1
    record_property("figure", f"test source: a playlist of parts {later - at:.1f} s before the first segment is complete")


def test_a_name_seen_before_has_a_playlist_with_its_first_part(start, record_property):
    weir = start("--no-record")
    publishers.ffmpeg("short", f"{weir.rtmp}/live/{NAME}").wait(20)
    weir.wait_state(NAME, "ended")
    began = time.monotonic()
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/{NAME}")
    try:
        old = http.fetch(f"{weir.web}/live/{NAME}/index.m3u8").good().text
        weir.wait(lambda: http.fetch(f"{weir.web}/live/{NAME}/index.m3u8").text != old, 10, "the new epoch", every=0.01)
        _, at, parts, _ = begins(weir, NAME)
    finally:
        publisher.kill()
    assert consists_of_parts(parts)
    record_property("figure", f"a name seen before: a playlist of parts {at - began:.2f} s after ffmpeg was started")


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


def test_stream_mp4_has_a_frame_within_a_tenth_of_a_second(start, record_property):
    weir = start("--no-record")
    found = min(first_fragment(weir, f"begin{number}") for number in range(3))
    record_property("figure", f"stream.mp4: the first fragment {found * 1000:.0f} ms after the first key frame")
    assert found <= 0.1


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
            tools.FFMPEG, "-v", "error", "-i", index, "-t", "5", "-map", "0:v", "-f", "framehash", "-")
        assert frames.stderr == ""
        numbers = [int(line.split(",")[1]) for line in frames.stdout.splitlines() if not line.startswith("#")]
        # Media time begins with the audio, which may come up to one video frame earlier.
        assert numbers == list(range(numbers[0], 150)) and numbers[0] <= 1
    finally:
        publisher.kill()
