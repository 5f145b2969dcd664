"""What takes the place of a publisher that is away: viewers stay, and what they see is told. Judged by ffmpeg, which plays through."""

import json
import os
import subprocess
import time

from harness import hls, publishers, sources, tools

TOKEN = "a-token-of-4711-letters"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ENTRY = {"segmentDuration": "500ms", "partDuration": "50ms", "targetDuration": 1, "reconnectWindow": "1s", "end": "never"}
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
GREY = (144, 144, 144)


def configuration(folder, streams: dict):
    path = folder / "weir.yaml"
    path.write_text(json.dumps({"streams": {name: {**ENTRY, **entry} for name, entry in streams.items()}}))
    return path


def picture(path):
    colour = "0x%02x%02x%02x" % GREY
    tools.run(tools.FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", f"color={colour}:s=322x182", "-frames:v", "1", path)
    return path


def on_air(weir, name: str, what, seconds: float = 10):
    weir.wait(lambda: (weir.stream(name) or {}).get("onAir", "") == what, seconds, f"{name} on air by {what}")


def colour(weir, name: str) -> tuple[int, ...]:
    """The mean colour of the newest key frame, by ffmpeg."""
    done = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-i", f"{weir.web}/live/{name}/index.m3u8", "-frames:v", "1", "-vf", "scale=1:1:in_color_matrix=bt709,format=rgb24", "-f", "rawvideo",
         "-pix_fmt", "rgb24", "-"], capture_output=True, timeout=30)
    assert len(done.stdout) == 3, done.stderr
    return tuple(done.stdout)


def test_viewers_play_through_publisher_and_fallback(start, tmp_path):
    # ffmpeg does not take up another size, so all of it is one film. Players of browsers are asked by `make players`.
    film = sources.source("short")
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": f"file:{film}"}}), "--admin-token", TOKEN)
    # On air without a publisher, from the server's start.
    on_air(weir, "cam", "fallback")
    index = hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    watch = hls.Watch(f"{weir.web}/live/cam/index.m3u8")
    player = subprocess.Popen(
        [tools.new_ffmpeg(), "-v", "error", "-i", index, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        epoch = weir.wait_state("cam", "live")["startedAt"]
        for _ in range(2):
            publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1)
            on_air(weir, "cam", "publisher")
            time.sleep(1)  # real time: so much of its media is on air
            publisher.kill()
            on_air(weir, "cam", "fallback")
            time.sleep(0.5)  # real time: so much of the fallback
        assert weir.stream("cam")["startedAt"] == epoch
        weir.get("/api/v1/streams/cam", method="DELETE", headers=ADMIN)
        weir.wait_state("cam", "ended")
        out, errors = player.communicate(timeout=20)
    finally:
        player.kill()
        watch.stop()
    assert not watch.problems, watch.problems
    assert "rror" not in errors, errors
    frames = [line for line in out.splitlines() if line and not line.startswith("#")]
    assert len(frames) > 2 * 30, len(frames)
    switched = [event for event in events(weir, "cam") if event["kind"] == "stream.switched"]
    assert [event["data"]["onAir"] for event in switched] == ["fallback", "publisher", "fallback", "publisher", "fallback"], switched
    gaps = [(entry["gaps"], entry["file"]) for entry in weir.json("/api/v1/recordings")["recordings"]]
    assert gaps and all(gap["reason"] == "nothing came from the publisher" for found, _ in gaps for gap in found), gaps


def test_another_size_takes_the_place_of_the_test_pattern(start, tmp_path):
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": "test"}}), "--admin-token", TOKEN)
    on_air(weir, "cam", "fallback")
    hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    watch = hls.Watch(f"{weir.web}/live/cam/index.m3u8")
    try:
        for shape, width in (("short", 320), ("small", 256)):
            publisher = publishers.ffmpeg(shape, f"{weir.rtmp}/live/cam", loop=-1)
            on_air(weir, "cam", "publisher")
            weir.wait(lambda: weir.stream("cam")["tracks"][0]["width"] == width, 10, "its size")  # noqa: B023
            publisher.kill()
            on_air(weir, "cam", "fallback")
            weir.wait(lambda: weir.stream("cam")["tracks"][0]["width"] == 1280, 10, "the size of the test pattern")
    finally:
        watch.stop()
    assert not watch.problems, watch.problems


def events(weir, name: str) -> list[dict]:
    return [event for event in json.loads(weir.get("/api/v1/events", headers=ADMIN).text)["events"] if event.get("stream") == name]


def test_a_picture_is_on_air_until_there_is_a_publisher(start, tmp_path):
    slate = picture(tmp_path / "slate.png")
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": f"file:{slate}"}}), "--admin-token", TOKEN, "--state", tmp_path)
    on_air(weir, "cam", "fallback")
    hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    assert max(abs(a - b) for a, b in zip(colour(weir, "cam"), GREY)) < 12, colour(weir, "cam")
    # No encoder runs for a picture.
    assert not weir.children()
    answer = weir.get(
        "/api/v1/streams/cam/settings", method="PUT", headers={**ADMIN, "Content-Type": "application/json"},
        body=b'{"fallback": "file:/etc/passwd"}')
    assert answer.status == 422 and "configuration file" in answer.text, answer


def test_another_stream_stands_in_while_it_has_a_publisher(start, tmp_path):
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": "stream:spare"}, "spare": {"end": "publisher"}}))
    assert not (weir.stream("cam") or {}).get("onAir")
    spare = publishers.ffmpeg("short", f"{weir.rtmp}/live/spare", loop=-1)
    on_air(weir, "cam", "fallback")
    size = weir.stream("spare")["tracks"][0]["width"]
    weir.wait(lambda: weir.stream("cam")["tracks"][0]["width"] == size, 10, "its tracks")
    spare.kill()
    weir.wait(lambda: weir.stream("cam")["onAir"] is None, 10, "nothing on air")
    weir.wait(lambda: weir.stream("cam")["warnings"], 10, "why")


def test_what_cannot_be_a_fallback_is_told_at_the_start(tmp_path):
    broken = tmp_path / "broken.png"
    broken.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    for fallback, words in (
        (f"file:{broken}", "broken.png"), (f"file:{tmp_path}/none.mp4", "none.mp4"), ("stream:cam", "its own fallback"),
        ("slate.png", "write test, file:PATH or stream:NAME")):
        done = subprocess.run(
            [tools.weir_binary(), "serve", "--no-record", "--http", "127.0.0.1:0", "--rtmp", "127.0.0.1:0", "--config",
             configuration(tmp_path, {"cam": {"fallback": fallback}})], capture_output=True, text=True, timeout=20, env=ENVIRONMENT)
        assert done.returncode in (2, 78) and words in done.stderr, (fallback, done)
