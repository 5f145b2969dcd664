"""Streams that wait for the next publisher when theirs has stopped: viewers stay, recordings are finished, and a restart changes
nothing."""

import json
import re
import subprocess

from harness import boxes, hls, packets, publishers, sources, tools

TOKEN = "a-token-of-4711-letters"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
ENTRY = {"segmentDuration": "500ms", "partDuration": "50ms", "targetDuration": 1, "reconnectWindow": "500ms"}


def configuration(folder, streams: dict):
    path = folder / "weir.yaml"
    path.write_text(json.dumps({"streams": {name: {**ENTRY, **entry} for name, entry in streams.items()}}))
    return path


def test_viewers_stay_over_a_clean_stop_and_each_publication_has_its_recording(start, tmp_path):
    weir = start("--config", configuration(tmp_path, {"cam": {"end": "linger", "linger": "5s"}}), "--admin-token", TOKEN)
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", rate=4)
    index = hls.first_playlist(f"{weir.web}/live/cam/index.m3u8")
    watch = hls.Watch(f"{weir.web}/live/cam/index.m3u8")
    # A player of others reads from the first segment to the end of the list.
    player = subprocess.Popen(
        [tools.new_ffmpeg(), "-v", "error", "-live_start_index", "0", "-i", index, "-map", "0:v", "-f", "framehash", "-hash", "md5", "-"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        before = weir.stream("cam")
        publisher.wait(20)
        away = weir.wait_state("cam", "offAir")
        assert away["startedAt"] == before["startedAt"]
        weir.whole_recordings("cam")
        publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", rate=4).wait(20)
        assert weir.wait_state("cam", "offAir")["startedAt"] == before["startedAt"]
        weir.wait_state("cam", "ended")
        out, errors = player.communicate(timeout=20)
    finally:
        player.kill()
        watch.stop()
    assert not watch.problems, watch.problems
    film = packets.probe(sources.source("short"))
    count = len(film["video"])
    frames = [line for line in out.splitlines() if line and not line.startswith("#")]
    assert len(frames) == 2 * count, (len(frames), count, errors)
    files = weir.whole_recordings("cam")
    assert len(files) == 2, files
    for path in files:
        assert [box.type for box in boxes.read_boxes(path.read_bytes())][1] == b"moov", path
        assert len(packets.probe(path)["video"]) == count
    kinds = [event["kind"] for event in json.loads(weir.get("/api/v1/events", headers=ADMIN).text)["events"] if event.get("stream") == "cam"]
    assert kinds.count("stream.started") == 1 and kinds.count("stream.interrupted") == 2 and kinds.count("stream.resumed") == 1, kinds
    assert kinds.count("recording.stored") == 2 and kinds.count("stream.ended") == 1, kinds


def test_a_name_that_anybody_may_take_ends_with_its_publisher(start, tmp_path):
    weir = start("--config", configuration(tmp_path, {"*": {"end": "never"}, "channel": {"audioCodec": "opus"}}))
    running = [publishers.ffmpeg("short", f"{weir.rtmp}/live/{name}", rate=4) for name in ("channel", "passer-by")]
    publishers.wait_all(running, 20)
    weir.wait_state("passer-by", "ended")
    assert weir.wait_state("channel", "offAir")["warnings"] == []
    # Nobody encodes for a stream without a publisher. Its other audio goes on with the next.
    weir.wait(lambda: not weir.children(), 10, "the end of the worker")
    again = publishers.ffmpeg("short", f"{weir.rtmp}/live/channel")
    weir.wait(lambda: len(weir.children()) == 1, 10, "another worker")
    opus = f"{weir.web}/live/channel/" + re.search(r'URI="([^"]+opus[^"]+)"', weir.get("/live/channel/index.m3u8").text)[1]
    before = hls.parse_media(weir.get(opus.removeprefix(weir.web)).text, opus).segments[-1].sequence
    again.wait(20)
    weir.wait(
        lambda: hls.parse_media(weir.get(opus.removeprefix(weir.web)).text, opus).segments[-1].sequence > before, 10, "its Opus")


def test_it_waits_on_after_a_crash_until_it_is_told_to_end(start, tmp_path):
    flags = ("--config", configuration(tmp_path, {"cam": {"end": "never"}}), "--state", tmp_path, "--admin-token", TOKEN)
    weir = start(*flags)
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", rate=4).wait(20)
    before = weir.wait_state("cam", "offAir")
    playlist = hls.first_playlist(f"{weir.web}/live/cam/index.m3u8").removeprefix(weir.web)
    weir.kill()
    weir = start(*flags)
    assert weir.wait_state("cam", "offAir")["startedAt"] == before["startedAt"]
    publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", rate=4).wait(20)
    assert weir.wait_state("cam", "offAir")["startedAt"] == before["startedAt"]
    # Where a player left it.
    assert weir.get(playlist).status == 200
    answer = weir.get("/api/v1/streams/cam", method="DELETE", headers=ADMIN)
    assert answer.status in (200, 202), answer
    weir.wait_state("cam", "ended")
    assert weir.get(playlist).good().text.rstrip().endswith("#EXT-X-ENDLIST")
