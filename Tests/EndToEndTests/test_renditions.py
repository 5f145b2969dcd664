"""Transcoded renditions as a decoder sees them: every frame, audio in sync, and sources of all kinds."""

import concurrent.futures
import contextlib
import math
import os
import re
import signal
import subprocess
import time

import pytest

from harness import hls, http, llhls, pattern, publishers, sources, tokens, tools
from test_encoding import Copy

#: Of the demo stream, by the numbers of its variants in the playlist: video and audio.
OUTPUTS = {"360p, AAC": 1, "180p, AAC": 2, "720p, Opus": 3, "180p, Opus": 5}
#: Stream → film and its frames.
FILMS = {"hevc": ("hevc", 240), "av1": ("av1-opus", 240), "ten": ("hevc-10", 150), "pq": ("hevc-pq", 150),
         "portrait": ("portrait", 150), "odd": ("odd", 120)}
SIZES = {"hevc": (160, 90), "av1": (160, 90), "ten": (160, 90), "pq": (160, 90), "portrait": (90, 160), "odd": (168, 90)}


@pytest.fixture(scope="module")
def encoding():
    """The token of encoders, for as long as a server makes two rungs of 720p."""
    with tokens.token("encoder"):
        yield


@pytest.fixture(scope="module")
def demo(encoding, start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("variants")
    # Long enough not to begin again while it is copied.
    film = pattern.film(folder / "pattern.mp4", 20, "1280:720", "-c:a", "aac", "-b:v", "2M")
    weir = start_shared("--source", f"demo=file:{film}", "--ladder", "360p@800k,180p@300k", "--audio-codec", "opus", "--no-record")
    weir.wait(lambda: len(((weir.stream("demo") or {}).get("ladder") or {}).get("renditions", [])) == 2, 30, "two rungs")
    weir.wait(lambda: weir.stream("demo")["audio"]["codecString"], 10, "the audio")
    url = f"{weir.web}/live/demo/index.m3u8"
    # A player begins up to six seconds back and copies five. Where the rungs came late, that is done in the next round of the film.
    weir.wait(lambda: (age := weir.stream("demo")["ageSeconds"]) < 12 or 7 < age % 20 < 12, 30, "a round of the film")
    with concurrent.futures.ThreadPoolExecutor(len(OUTPUTS)) as pool:
        copies = dict(zip(OUTPUTS, pool.map(
            lambda name: Copy(url, folder / f"{OUTPUTS[name]}.mp4", ("-map", f"0:p:{OUTPUTS[name]}")), OUTPUTS)))
    return weir, copies, weir.stream("demo")


@pytest.mark.parametrize("name", OUTPUTS)
def test_no_frame_of_a_rung_is_lost_doubled_or_out_of_order(demo, name):
    copy, stream = demo[1][name], demo[2]
    assert len(copy.numbers) == len(copy.frame_times) >= 30
    steps = [b - a for a, b in zip(copy.numbers, copy.numbers[1:])]
    assert min(steps) == 1, "a frame twice, or out of order"
    # A machine that is too busy drops frames, and reports how many.
    assert sum(steps) - len(steps) <= stream["ladder"]["droppedFrames"]
    for number, at in zip(copy.numbers, copy.frame_times):
        assert abs(at - copy.frame_times[0] - (number - copy.numbers[0]) / 30) < 0.002, f"frame {number} at {at}"


@pytest.mark.parametrize("name", OUTPUTS)
def test_flash_and_beep_come_together(demo, name, record_property):
    worst = demo[1][name].apart(least=1)
    record_property("figure", f"{name}: flash and beep at most {worst * 1000:.1f} ms apart")
    assert worst <= 0.020


def media(url: str, path, count: int = 2, sequence: int | None = None):
    """Some complete segments of a rendition in one file, and the number of the first. A rung that is behind has them later."""
    folder, end = url.rsplit("/", 1)[0], time.monotonic() + 20
    while True:
        playlist = llhls.parse(http.fetch(url).good().text, url)
        complete = [s.sequence for s in playlist.segments if s.uri]
        if len(complete) >= count and complete[-1] >= (sequence or 0) + count - 1:
            break
        assert time.monotonic() < end, playlist.text
        time.sleep(0.1)
    sequence = sequence or complete[-count]
    names = [playlist.segments[0].map] + [f"{number}.m4s" for number in range(sequence, sequence + count)]
    path.write_bytes(b"".join(http.fetch(f"{folder}/{name}").good().body for name in names))
    return sequence


def test_a_rung_looks_like_the_source_in_its_size(demo, tmp_path, record_property):
    weir = demo[0]
    index = http.fetch(f"{weir.web}/live/demo/index.m3u8").good().text
    epoch = f"{weir.web}/live/demo/{re.search(r'^(.*)/video/', index, re.M)[1]}"
    sequence = media(f"{epoch}/video/index.m3u8", tmp_path / "video.mp4")
    source = times(tmp_path / "video.mp4")
    for name, size, least in (("360p", "640:360", 38), ("180p", "320:180", 38)):
        media(f"{epoch}/{name}/index.m3u8", tmp_path / f"{name}.mp4", sequence=sequence)
        tools.run(
            tools.FFMPEG, "-v", "error", "-nostdin", "-i", tmp_path / "video.mp4", "-i", tmp_path / f"{name}.mp4", "-lavfi",
            f"[0:v]scale={size}:flags=bicubic[a];[a][1:v]psnr=stats_file={tmp_path / name}", "-f", "null", "-")
        errors = [float(error) for error in re.findall(r"mse_avg:([0-9.]+)", (tmp_path / name).read_text())]
        # If the machine was too busy for a frame, there is none to compare with.
        there = set(times(tmp_path / f"{name}.mp4"))
        compared = [error for at, error in zip(source, errors) if at in there]
        found = 10 * math.log10(255**2 / (sum(compared) / len(compared)))
        record_property("figure", f"{name}: {found:.1f} dB against the source in its size, {len(compared)} frames")
        assert found >= least and len(compared) >= 30, name


def times(path) -> list[float]:
    done = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", path)
    assert done.stderr == ""
    return [float(line.split(",")[0]) for line in done.stdout.split()]


def test_audio_in_another_codec_is_cut_where_the_source_is_without_a_hole(demo, tmp_path):
    weir = demo[0]
    index = http.fetch(f"{weir.web}/live/demo/index.m3u8").good().text
    epoch = f"{weir.web}/live/demo/{re.search(r'^(.*)/video/', index, re.M)[1]}"
    sequence = media(f"{epoch}/opus/index.m3u8", tmp_path / "opus.mp4")
    media(f"{epoch}/video/index.m3u8", tmp_path / "video.mp4", sequence=sequence)

    audio, video = times(tmp_path / "opus.mp4"), times(tmp_path / "video.mp4")
    assert all(abs(b - a - 0.02) < 0.0001 for a, b in zip(audio, audio[1:]))
    assert -0.001 <= audio[0] - video[0] < 0.021
    assert abs(len(audio) - 200) <= 1
    cuts = parts(f"{epoch}/video/index.m3u8")
    player = llhls.Player(f"{epoch}/opus/index.m3u8")
    player.play(60, states=20)
    player.judge_media()
    cuts |= parts(f"{epoch}/video/index.m3u8")
    assert player.problems == []
    own = parts(f"{epoch}/opus/index.m3u8")
    common = own.keys() & cuts.keys()
    assert len(common) >= 10
    # A frame of Opus is 20 ms long.
    assert {uri: (own[uri], cuts[uri]) for uri in common if abs(own[uri] - cuts[uri]) > 0.021} == {}


def parts(url: str) -> dict[str, float]:
    """Duration in seconds of each listed part of a rendition, by its address."""
    return {part.uri: part.duration for part in llhls.parse(http.fetch(url).good().text, url).parts}


@pytest.fixture(scope="module")
def films(encoding, start_shared, tmp_path_factory):
    """Films of all kinds, to their ends, three at a time, and a rotated one; each with a rung."""
    for other in start_shared.running:
        other.stop()  # what it encodes is judged
    turned = tmp_path_factory.mktemp("films") / "turned.mp4"
    subprocess.run([tools.new_ffmpeg(), "-v", "error", "-display_rotation", "-90", "-i", str(sources.source("clip")), "-c",
                    "copy", str(turned)], check=True, timeout=30)
    weir = start_shared("--ladder", "90p@200k", "--source", f"turned=file:{turned}", "--no-record")
    #: Of each film its playlist, what a decoder says of its rung, and of the source; and frames that were told as left out.
    weir.found, weir.dropped = {}, {}
    with contextlib.ExitStack() as stack:
        names = list(FILMS)
        for some in (names[:3], names[3:]):
            running = []
            for name in some:
                running.append(publishers.ffmpeg(FILMS[name][0], f"{weir.rtmp}/live/{name}"))
                stack.callback(running[-1].kill)
            publishers.wait_all(running, 40)
            for name in some:
                weir.dropped[name] = ((weir.wait_state(name, "ended") or {}).get("ladder") or {}).get("droppedFrames", 0)
            # An ended stream stays for a minute.
            for name in some:
                index = http.fetch(f"{weir.web}/live/{name}/index.m3u8").good().text
                weir.found[name] = index, probe(weir, name, index, "90p"), probe(weir, name, index, "video")
    return weir


def probe(weir, name: str, index: str, rendition: str) -> tuple[dict[str, str], list[str]]:
    """A decoder's data of a rendition's frames, and their times, once its playlist has ended."""
    epoch = re.search(r"^(.*)/video/", index, re.M)[1]
    url = f"{weir.web}/live/{name}/{epoch}/{rendition}/index.m3u8"
    weir.wait(lambda: "#EXT-X-ENDLIST" in http.fetch(url).text, 20, f"the end of {name}, {rendition}")
    done = tools.run(
        tools.FFPROBE, "-v", "error", "-select_streams", "v", "-show_entries",
        "stream=codec_name,width,height,pix_fmt,color_transfer,color_primaries,color_space:frame=pts_time", "-of", "flat",
        url, timeout=60)
    assert done.stderr == "", done.stderr
    fields = dict(re.findall(r'^streams\.stream\.0\.(\w+)="?([^"\n]*)', done.stdout, re.M))
    return fields, re.findall(r'frame\.\d+\.pts_time="([0-9.]+)"', done.stdout)


@pytest.mark.parametrize("name", FILMS)
def test_every_kind_of_source_has_its_rung(films, name):
    index, (fields, times), (_, source) = films.found[name]
    assert (fields["codec_name"], fields["pix_fmt"]) == ("h264", "yuv420p")
    assert (int(fields["width"]), int(fields["height"])) == SIZES[name]
    assert len(source) == FILMS[name][1] and set(times) <= set(source)
    # A machine that is too busy drops frames, and reports each.
    is_busy = any(f"{name}: transcoding left out" in line for _, line in films.lines)
    told = len(times) + films.dropped[name] >= len(source)
    assert len(times) == len(source) or is_busy and (told or len(times) > len(source) / 2), (len(times), films.dropped[name], len(source))
    if name == "pq":
        assert (fields["color_transfer"], fields["color_primaries"], fields["color_space"]) == (
            "smpte2084", "bt2020", "bt2020nc")
        variants = [line for line in index.splitlines() if line.startswith("#EXT-X-STREAM-INF")]
        assert ["VIDEO-RANGE=PQ" in line for line in variants].count(True) == 2


def test_rotated_video_is_rotated_in_its_rung(films, tmp_path):
    index = http.fetch(f"{films.web}/live/turned/index.m3u8").good().text
    epoch = f"{films.web}/live/turned/{re.search(r'^(.*)/video/', index, re.M)[1]}"
    for name in ("video", "90p"):
        media(f"{epoch}/{name}/index.m3u8", tmp_path / f"{name}.mp4", 1)
        described = tools.run(tools.FFPROBE, "-v", "error", "-show_streams", tmp_path / f"{name}.mp4").stdout
        assert "rotation=-90" in described, name


def test_all_renditions_are_held_back_alike(start):
    weir = start("--audio-codec", "aac", "--segment-duration", "1s", "--no-record")
    publisher = publishers.ffmpeg("loop-opus", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        url = f"{weir.web}/live/cam/index.m3u8"
        weir.wait(lambda: "/aac/" in http.fetch(url).text, 20, "the audio in AAC")
        top = hls.parse_multivariant(http.fetch(url).text, url)
        lists = [variant.uri for variant in top.variants] + [media["URI"] for media in top.media if "URI" in media]
        found = {}
        for address in map(top.absolute, lists):
            listed = llhls.parse(http.fetch(address).good().text, address)
            found[address.split("/")[-2]] = (listed.control["PART-HOLD-BACK"], listed.part_target)
        assert found.keys() == {"video", "audio", "aac"}
        # AAC frames do not fit into 200 ms as Opus frames do: three of the longest parts, for all.
        assert found["aac"][1] != found["audio"][1], found
        assert {hold for hold, _ in found.values()} == {f"{float(3 * max(target for _, target in found.values())):.6f}"}, found
    finally:
        publisher.kill()


def test_audio_survives_a_reconnect_and_the_death_of_its_transcoder(start):
    weir = start("--audio-codec", "aac", "--segment-duration", "1s", "--no-record")
    first = publishers.ffmpeg("loop-opus", f"{weir.rtmp}/live/cam", loop=-1)
    index = f"{weir.web}/live/cam/index.m3u8"
    weir.wait(lambda: "/aac/" in http.fetch(index).text, 20, "the audio in AAC")
    epoch = f"{weir.web}/live/cam/{re.search(r'^(.*)/video/', http.fetch(index).text, re.M)[1]}"

    def segments(name):
        url = f"{epoch}/{name}/index.m3u8"
        return [s for s in llhls.parse(http.fetch(url).text, url).segments if s.uri]

    def gaps(name):
        return [s.sequence for s in segments(name) if s.gap]

    weir.wait(lambda: len(segments("aac")) >= 2, 20, "segments")
    first.kill()
    weir.wait_state("cam", "reconnecting")
    second = publishers.ffmpeg("loop-opus", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        broken = weir.wait(lambda: next((s.sequence for s in segments("aac")[:-1] if s.discontinuity), None), 20,
                           "what comes after the reconnect")
        # A gap in the audio is one in the video, too: the outage. The audio is told later, as its transcoder takes time.
        weir.wait(lambda: gaps("aac") == gaps("video"), 15, "gaps of both")
        outage = gaps("video")
        assert [s.sequence for s in segments("video") if s.discontinuity] == [broken]
        os.kill(weir.stream("cam")["audio"]["processID"], signal.SIGKILL)
        newest = segments("video")[-1].sequence
        weir.wait(lambda: (s := segments("aac"))[-1].sequence > newest + 2 and not s[-1].gap, 20, "the audio comes back")
        assert weir.stream("cam")["audio"]["restarts"] == 1
        assert set(gaps("video")) <= set(outage)
        numbers = [s.sequence for s in segments("aac")]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert tools.run(tools.FFPROBE, "-v", "error", "-read_intervals", "%+4", "-show_entries", "frame=pts_time", "-of",
                         "csv=p=0", f"{epoch}/aac/index.m3u8", timeout=30).stderr == ""
    finally:
        second.kill()


def test_audio_alone_has_both_codecs(start):
    weir = start("--audio-codec", "opus", "--segment-duration", "1s", "--no-record")
    publisher = publishers.ffmpeg("audio-only", f"{weir.rtmp}/live/radio", loop=-1)
    try:
        url = f"{weir.web}/live/radio/index.m3u8"
        weir.wait(lambda: http.fetch(url).status == 200 and "/opus/" in http.fetch(url).text, 20, "two kinds of audio")
        top = hls.parse_multivariant(http.fetch(url).text, url)
        assert [variant.uri.split("/")[-2] for variant in top.variants] == ["audio", "opus"]
        player = llhls.Player(top.absolute(top.variants[1].uri))
        player.play(60, states=15)
        player.judge_media()
        assert player.problems == []
        described = tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0",
                              f"{weir.web}/live/radio/manifest.mpd", timeout=30)
        assert described.stdout.split()[:2] == ["aac", "opus"] and described.stderr == ""
    finally:
        publisher.kill()
