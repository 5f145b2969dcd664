"""Video that is turned and mirrored: a publisher's by the matrix of its track, the test pattern by its pixels."""

import json

from harness import publishers, tools


def test_a_publishers_video_is_turned_by_the_matrix_of_its_track(start):
    weir = start("--rotate", "mirrored-90")
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam").wait(40)
    entry = weir.wait(lambda: next((r for r in weir.recordings_of("cam") if r["state"] == "completed"), None), 20, "a recording")
    path = weir.recordings / "cam" / entry["file"]
    # ffmpeg turns the one as the matrix says, and the other one as the settings said.
    turned = tools.run(tools.FFMPEG, "-v", "info", "-i", path, "-noautorotate", "-i", path, "-lavfi",
                       "[1:v]hflip,transpose=clock[b];[0:v][b]psnr", "-f", "null", "-").stderr
    assert "average:inf" in turned, turned[-500:]


def test_the_test_patterns_pixels_are_turned(start):
    weir = start("--source", "demo=test?rotate=mirrored-270")
    weir.wait_state("demo", "live")
    (video,) = [track for track in weir.stream("demo")["tracks"] if track["kind"] == "video"]
    assert (video["width"], video["height"]) == (720, 1280)
    told = tools.run(tools.FFPROBE, "-v", "error", "-show_streams", "-of", "json", f"{weir.web}/live/demo/stream.mp4").stdout
    shown = next(stream for stream in json.loads(told)["streams"] if stream["codec_type"] == "video")
    assert (shown["width"], shown["height"]) == (720, 1280) and not shown.get("side_data_list")
