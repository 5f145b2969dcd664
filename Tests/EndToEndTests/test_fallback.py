"""What takes the place of a publisher that is away: viewers stay, and what they see is told. Judged by ffmpeg, which plays through."""

import json
import subprocess
import time

from harness import hls, packets, publishers, sources, tools

TOKEN = "a-token-of-4711-letters"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ENTRY = {"segmentDuration": "500ms", "partDuration": "50ms", "targetDuration": 1, "reconnectWindow": "1s", "end": "never"}
GREEN = (64, 200, 64)


def configuration(folder, streams: dict):
    path = folder / "weir.yaml"
    path.write_text(json.dumps({"streams": {name: {**ENTRY, **entry} for name, entry in streams.items()}}))
    return path


def picture(path):
    colour = "0x%02x%02x%02x" % GREEN
    tools.run(tools.FFMPEG, "-v", "error", "-y", "-f", "lavfi", "-i", f"color={colour}:s=322x182", "-frames:v", "1", path)
    return path


def on_air(weir, name: str, what, seconds: float = 10):
    weir.wait(lambda: (weir.stream(name) or {}).get("onAir", "") == what, seconds, f"{name} on air by {what}")


def colour(weir, name: str) -> tuple[int, ...]:
    """The mean colour of the newest key frame, by ffmpeg."""
    done = subprocess.run(
        [tools.FFMPEG, "-v", "error", "-i", f"{weir.web}/live/{name}/index.m3u8", "-frames:v", "1", "-vf", "scale=1:1", "-f", "rawvideo",
         "-pix_fmt", "rgb24", "-"], capture_output=True, timeout=30)
    assert len(done.stdout) == 3, done.stderr
    return tuple(done.stdout)


def test_viewers_play_through_publisher_fallback_and_a_publisher_of_another_size(start, tmp_path):
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": "test"}}), "--admin-token", TOKEN)
    # On air without a publisher, from the server's start.
    on_air(weir, "cam", "fallback")
    index = hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    watch = hls.Watch(f"{weir.web}/live/cam/index.m3u8")
    player = subprocess.Popen(
        [tools.new_ffmpeg(), "-v", "error", "-i", index, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        epoch = weir.wait_state("cam", "live")["startedAt"]
        for shape in ("short", "small"):
            publisher = publishers.ffmpeg(shape, f"{weir.rtmp}/live/cam", loop=-1)
            on_air(weir, "cam", "publisher")
            time.sleep(1)  # so much of its media is on air
            lost = time.monotonic()
            publisher.kill()
            on_air(weir, "cam", "fallback")
            assert time.monotonic() - lost < 5
            time.sleep(0.5)  # so much of the fallback
        assert weir.stream("cam")["startedAt"] == epoch
        weir.get("/api/v1/streams/cam", method="DELETE", headers=ADMIN)
        weir.wait_state("cam", "ended")
        out, errors = player.communicate(timeout=20)
    finally:
        player.kill()
        watch.stop()
    assert not watch.problems, watch.problems
    sizes = {line.split(",")[4].strip() for line in out.splitlines() if line and not line.startswith("#")}
    assert len(sizes) >= 1 and "rror" not in errors, errors
    switched = [event for event in events(weir, "cam") if event["kind"] == "stream.switched"]
    assert [event["onAir"] for event in switched] == ["fallback", "publisher", "fallback", "publisher", "fallback"], switched
    # Lost publishers: one recording for each, without the fallback.
    for path, shape in zip(weir.whole_recordings("cam"), ("short", "small"), strict=True):
        film = packets.probe(sources.source(shape))
        found = packets.probe(path)
        assert {stream["width"] for stream in found["streams"] if stream["codec_type"] == "video"} == {
            stream["width"] for stream in film["streams"] if stream["codec_type"] == "video"}, path


def events(weir, name: str) -> list[dict]:
    return [event for event in json.loads(weir.get("/api/v1/events", headers=ADMIN).text)["events"] if event.get("stream") == name]


def test_a_picture_is_on_air_until_there_is_a_publisher(start, tmp_path):
    slate = picture(tmp_path / "slate.png")
    weir = start("--config", configuration(tmp_path, {"cam": {"fallback": f"file:{slate}"}}), "--admin-token", TOKEN)
    on_air(weir, "cam", "fallback")
    hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    assert max(abs(a - b) for a, b in zip(colour(weir, "cam"), GREEN)) < 12, colour(weir, "cam")
    # No encoder runs for a picture.
    assert not weir.children()
    answer = weir.get(
        "/api/v1/streams/cam/settings", method="PUT", headers={**ADMIN, "Content-Type": "application/json"},
        body=b'{"fallback": "file:/etc/passwd"}')
    assert answer.status == 400 and "configuration file" in answer.text, answer


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
             configuration(tmp_path, {"cam": {"fallback": fallback}})], capture_output=True, text=True, timeout=20)
        assert done.returncode == 2 and words in done.stderr, (fallback, done)
