"""`/live/NAME/EPOCH/RENDITION/N.mp4`: one segment that plays by itself, its init segment in front."""

import os
import re
import time
import urllib.parse

import pytest

from harness import llhls, publishers, tools

RENDITIONS = ("av", "video", "audio", "120p", "opus")


@pytest.fixture(scope="module")
def live(start_shared):
    """A film with a rung and with audio in another codec, and the address of its epoch."""
    weir = start_shared("--ladder", "cam=120p@200k", "--audio-codec", "cam=opus", "--rewind", "1h", "--window", "6s",
                        "--target-duration", "2")
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    index = f"{weir.web}/live/cam/index.m3u8"
    weir.wait(lambda: "opus" in weir.get(index).text and "120p" in weir.get(index).text, 30, "all renditions")
    epoch = weir.stream("cam")
    base = re.search(r"^([0-9a-z]+)/", weir.get(index).good().text, re.M)[1]
    weir.base = f"{weir.web}/live/cam/{base}"
    assert epoch["state"] == "live"
    weir.first = weir.wait(lambda: (first := weir.get(f"{weir.base}/av/1.mp4")).status == 200 and first, 20, "segment 1 in the window")
    yield weir
    publisher.kill()


def playlist(weir, rendition: str) -> llhls.Playlist:
    url = f"{weir.base}/{rendition}/index.m3u8"
    return llhls.parse(weir.get(url).good().text, url)


def newest(weir, rendition: str) -> llhls.Segment:
    return [segment for segment in playlist(weir, rendition).segments if segment.uri is not None][-1]


@pytest.mark.parametrize("rendition", RENDITIONS)
def test_it_is_the_init_segment_and_the_segment(live, rendition, tmp_path):
    segment = newest(live, rendition)
    url = f"{live.base}/{rendition}/{segment.sequence}.mp4"
    answer = live.get(url).good()
    base = f"{live.base}/{rendition}/"
    init = live.get(urllib.parse.urljoin(base, segment.map)).good()
    media = live.get(urllib.parse.urljoin(base, segment.uri)).good()
    assert answer.body == init.body + media.body
    for name in ("cache-control", "content-type", "access-control-allow-origin"):
        assert answer.headers[name] == media.headers[name], name
    middle = len(init.body) - 10
    part = live.get(url, headers={"Range": f"bytes={middle}-{middle + 99}"})
    assert part.status == 206 and part.body == answer.body[middle:middle + 100]
    assert part.headers["content-range"] == f"bytes {middle}-{middle + 99}/{len(answer.body)}"
    tag = answer.headers["etag"]
    assert tag != media.headers["etag"] and live.get(url, headers={"If-None-Match": tag}).status == 304
    assert live.get(url, method="HEAD").headers["content-length"] == str(len(answer.body))
    path = tmp_path / "segment.mp4"
    path.write_bytes(answer.body)
    for program in (tools.FFMPEG, tools.new_ffmpeg()):
        done = tools.run(program, "-v", "warning", "-i", path, "-f", "null", "-")
        assert (done.returncode, done.stderr) == (0, ""), program


def test_a_segment_in_the_making_is_waited_for_and_given_whole(live):
    before = playlist(live, "av").segments[-1].sequence
    # It has just begun.
    number = live.wait(lambda: (newest := playlist(live, "av").segments[-1].sequence) > before and newest + 1, 10, "a segment's end")
    began = time.monotonic()
    answer = live.get(f"{live.base}/av/{number}.mp4").good()
    assert time.monotonic() - began > 0.1
    assert answer.body.endswith(live.get(f"{live.base}/av/{number}.m4s").good().body)
    for name in (f"{number + 5}.mp4", "0.mp4", "01.mp4", "x.mp4"):
        assert live.get(f"{live.base}/av/{name}").status == 404, name


@pytest.mark.parametrize("rendition", ("av", "120p"))
def test_ffplay_plays_it_by_itself(live, rendition):
    ffplay = tools.shutil.which("ffplay")
    if ffplay is None:
        pytest.skip("ffplay is missing")
    segment = newest(live, rendition)
    environment = {**os.environ, "SDL_VIDEODRIVER": "dummy", "SDL_AUDIODRIVER": "dummy"}
    began = time.monotonic()
    done = tools.subprocess.run(
        [ffplay, "-hide_banner", "-v", "info", "-stats", "-autoexit", f"{live.base}/{rendition}/{segment.sequence}.mp4"],
        stdin=tools.subprocess.DEVNULL, capture_output=True, text=True, timeout=20, env=environment)
    took = time.monotonic() - began
    assert done.returncode == 0, done.stderr
    clocks = [float(found) for found in re.findall(r"([0-9]+\.[0-9]+) (?:A-V|M-V|M-A)", done.stderr)]
    assert "Video: h264" in done.stderr and clocks, done.stderr
    assert max(clocks) - min(clocks) > segment.duration * 0.6 and took > segment.duration * 0.6, (clocks, took)


# Last: it waits until the stream is old enough.


def test_one_that_left_the_window_comes_from_the_disk_the_same(live):
    live.wait(lambda: playlist(live, "av").sequence > 6, 20, "segment 1 out of the window")
    assert live.get(f"{live.base}/av/1.mp4").good().body == live.first.body
    old = live.get(f"{live.base}/video/1.mp4").good()
    assert old.body.endswith(live.get(f"{live.base}/video/1.m4s").good().body) and b"moov" in old.body[:200]
