"""Replay, rewind and clips: a recording that is played while it is written, while it is finished, and afterwards."""

import concurrent.futures
import dataclasses
import datetime
import hashlib
import http.client
import json
import re
import signal
import socket
import subprocess
import time
import urllib.parse
from fractions import Fraction

import pytest

from harness import boxes, dash, hls, packets, publishers, sources, tokens, tools

FILM = "h264-30"
SECONDS = 16
#: A key frame every two seconds, B-frames, and a counter in each frame.
FRAMES = SECONDS * 30


@dataclasses.dataclass
class Seen:
    """Observations of one publication, by the time of the test."""

    name: str = ""
    epoch: str = ""
    live: dict = dataclasses.field(default_factory=dict)
    growing: dict = dataclasses.field(default_factory=dict)
    programme: list = dataclasses.field(default_factory=list)
    event: list = dataclasses.field(default_factory=list)
    manifest: str = ""
    clip: bytes = b""
    slow: dict = dataclasses.field(default_factory=dict)


class SlowReader:
    """A viewer that reads a few bytes, then waits: its response is in progress while the file is finished."""

    def __init__(self, url: str):
        parts = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30)
        # A small TCP window keeps most of the response on the server.
        self.connection.connect()
        self.connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        self.connection.request("GET", parts.path + ("?" + parts.query if parts.query else ""))
        self.response = self.connection.getresponse()
        assert self.response.status == 200, self.response.status
        self.bytes = self.response.read(2000)

    def rest(self) -> bytes:
        self.bytes += self.response.read()
        self.connection.close()
        return self.bytes


@pytest.fixture(scope="module")
def server(start_shared):
    return start_shared("--window", "6s", "--rewind", "1h")


def film(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("replay") / "film.mp4"
    done = tools.run(
        tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=640x360:r=30", "-f", "lavfi", "-i",
        "anoisesrc=color=pink:seed=7:amplitude=0.3:sample_rate=48000", "-t", str(SECONDS), "-c:v", "libx264",
        "-preset", "veryfast", "-pix_fmt", "yuv420p", "-b:v", "3M", "-bf", "2", "-g", "60", "-sc_threshold", "0",
        "-c:a", "aac", "-f", "mp4", path)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def seen(server, tmp_path_factory) -> Seen:
    """Publishes once, plays the file while it is written, and keeps slow readers attached while it is finished."""
    seen = Seen()
    with tokens.token("encoder"):
        source = film(tmp_path_factory)
    publisher = publishers.ffmpeg(source, server.rtmp + "/live/cam")
    try:
        server.wait_state("cam", "live")
        seen.epoch = re.search(r"^(\w+)/av/index.m3u8$", server.get("/live/cam/index.m3u8").text, re.M)[1]
        seen.name = server.stream("cam")["recording"]["file"].split("/")[1].removesuffix(".mp4")
        slow = []
        while publisher.process.poll() is None:
            text = server.get(f"/live/cam/{seen.epoch}/av/index.m3u8").text
            for number in re.findall(r"^(\d+)\.m4s$", text, re.M):
                for rendition in ("av", "video", "audio"):
                    key = (rendition, int(number))
                    if key not in seen.live:
                        seen.live[key] = server.get(f"/live/cam/{seen.epoch}/{rendition}/{number}.m4s").good().body
            programme = server.get(f"/live/cam/{seen.epoch}/av/dvr.m3u8").text
            seen.programme.append(programme)
            event = server.get(f"/recordings/cam/{seen.name}/av/index.m3u8")
            if event.status == 200:
                seen.event.append(event.text)
            count = max((n for _, n in seen.live), default=0)
            if count >= 5 and not seen.clip:
                seen.manifest = server.get(f"/recordings/cam/{seen.name}/manifest.mpd").text
                seen.clip = server.get(f"/api/v1/recordings/cam/{seen.name}.mp4/clip?from=2.5&to=6").good().body
                for rendition in ("av", "video", "audio"):
                    for number in (1, 2):
                        path = f"/recordings/cam/{seen.name}/{rendition}/{number}.m4s"
                        seen.growing[rendition, number] = server.get(path).good().body
            # Late, but within the server's time limit for clients that do not read, 20 s.
            if count >= 6 and not slow:
                for number in range(1, 5):
                    for path in (f"/recordings/cam/{seen.name}/av/{number}.m4s",
                                 f"/live/cam/{seen.epoch}/video/{number}.m4s"):
                        slow.append((path, SlowReader(server.web + path)))
                path = f"/api/v1/recordings/cam/{seen.name}.mp4/clip?from=1&to=7.5"
                slow.append((path, SlowReader(server.web + path)))
            time.sleep(0.3)
        publisher.wait()
        server.wait(lambda: [r["state"] for r in server.recordings_of("cam")] == ["completed"], 15, "the recording is finished")
        with concurrent.futures.ThreadPoolExecutor(len(slow)) as pool:
            seen.slow = dict(zip((path for path, _ in slow), pool.map(lambda pair: pair[1].rest(), slow)))
        return seen
    finally:
        publisher.kill()


@pytest.fixture(scope="module")
def recording(server, seen):
    """The finished file."""
    return server.recordings / "cam" / f"{seen.name}.mp4"


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"^(\d+)\.m4s$", text, re.M)]


def counts(target, *options) -> dict[str, int]:
    errors, frames = packets.decode(target, *options)
    assert errors == ""
    return frames


def test_a_recording_in_the_making_is_an_event_that_only_grows(seen):
    # The last ones may have been read when it was finished.
    growing = [text for text in seen.event if "ENDLIST" not in text]
    assert len(growing) > 5
    before = ""
    for text in growing:
        assert "#EXT-X-PLAYLIST-TYPE:EVENT\n" in text
        assert text.startswith(before)
        before = text
    assert numbers(before) == list(range(1, len(numbers(before)) + 1)) and len(numbers(before)) >= 6
    assert 'type="dynamic"' in seen.manifest and "video/t1-$Time$.m4s" in seen.manifest


def test_names_by_time_reach_back_to_the_beginning(server, seen):
    for rendition in ("video", "audio"):
        text = server.get(f"/live/cam/{seen.epoch}/{rendition}/dvr.m3u8").good().text
        names = re.findall(r"^(t1-\d+\.m4s)$", text, re.M)
        assert len(names) == text.count("#EXTINF") > 6
        for number, name in enumerate(names, 1):
            if (rendition, number) in seen.live:
                again = server.get(f"/live/cam/{seen.epoch}/{rendition}/{name}").good()
                assert again.body == seen.live[rendition, number], f"{rendition}/{name} is not segment {number}"


def test_live_addresses_reach_back_to_the_beginning_and_keep_their_bytes(server, seen):
    listed = numbers(server.get(f"/live/cam/{seen.epoch}/av/index.m3u8").text)
    old = [key for key in seen.live if key[1] < min(listed) - 3]
    assert len(old) >= 6, "too little has left the window"
    for rendition, number in seen.live:
        again = server.get(f"/live/cam/{seen.epoch}/{rendition}/{number}.m4s").good()
        assert again.body == seen.live[rendition, number], f"{rendition}/{number} has other bytes now"
        assert "immutable" in again.headers["cache-control"]


def test_the_programme_lists_everything_since_its_beginning(server, seen):
    before: list[int] = []
    for text in seen.programme:
        now = numbers(text)
        assert "#EXT-X-PLAYLIST-TYPE:EVENT\n" in text, text
        assert now == list(range(1, len(now) + 1)) and len(now) >= len(before)
        before = now
    end = server.get(f"/live/cam/{seen.epoch}/av/dvr.m3u8").text
    assert end.endswith("#EXT-X-ENDLIST\n") and len(numbers(end)) == SECONDS // 2
    assert hls.check_media(hls.parse_media(end, server.web + f"/live/cam/{seen.epoch}/av/dvr.m3u8")) == []
    assert counts(server.web + "/live/cam/dvr.m3u8")["video"] == FRAMES


def test_readers_notice_nothing_when_the_head_is_inserted_before_the_media(server, seen, recording):
    assert [box.type for box in boxes.read_boxes(recording.read_bytes())] == [b"ftyp", b"moov", b"free", b"mdat"]
    for (rendition, number), body in seen.growing.items():
        assert server.get(f"/recordings/cam/{seen.name}/{rendition}/{number}.m4s").good().body == body
        assert seen.live[rendition, number] == body
    assert len(seen.slow) == 9
    for path, body in seen.slow.items():
        assert hashlib.md5(server.get(path).good().body).digest() == hashlib.md5(body).digest(), path


def test_the_movie_has_every_frame(recording):
    assert counts(recording)["video"] == FRAMES


@pytest.mark.parametrize("document", ["index.m3u8", "manifest.mpd"])
def test_hls_and_dash_show_every_frame_of_the_movie(server, seen, recording, document):
    url = f"{server.web}/recordings/cam/{seen.name}/{document}"
    found = packets.probe(url)
    assert (len(found["video"]), len(found["audio"])) == (FRAMES, len(packets.probe(recording)["audio"]))
    assert counts(url)["video"] == FRAMES


def test_playlists_and_manifest_of_the_movie_are_whole_and_right(server, seen):
    base = f"{server.web}/recordings/cam/{seen.name}"
    text = server.get(f"{base}/av/index.m3u8").text
    assert "#EXT-X-PLAYLIST-TYPE:VOD\n" in text and text.endswith("#EXT-X-ENDLIST\n")
    assert hls.check_media(hls.parse_media(text, f"{base}/av/index.m3u8")) == []
    manifest = server.get(f"{base}/manifest.mpd").text
    assert 'type="static"' in manifest
    told = dash.parse(manifest, f"{base}/manifest.mpd")
    assert dash.check(told) == []
    # The presentation begins with the timeline, before the first frame is shown, and ends with the last frame.
    [video] = [one for one in told.representations if one.kind == "video"]
    begin, end = (video.period_start + Fraction(ticks - video.offset, video.timescale)
                  for ticks in (video.entries[0].time, video.entries[-1].time + video.entries[-1].duration))
    assert video.period_start == 0 < begin < 0.2
    assert abs(end - dash.seconds(told.attributes["mediaPresentationDuration"])) <= Fraction(1, 1000)
    assert server.get(f"{base}/video/iframes.m3u8").text.count("#EXT-X-BYTERANGE") == SECONDS // 2
    for missing in ("av/0.m4s", "av/99.m4s", "other/1.m4s", "video/init-9.mp4", "av/1.0.m4s"):
        assert server.get(f"{base}/{missing}").status == 404


@pytest.mark.skipif(not tools.GSTREAMER, reason="gst-launch-1.0 is missing")
def test_gstreamer_decodes_every_frame_of_the_file(recording, tmp_path):
    """A finished recording is an ordinary MP4: qtdemux needs only its tables, and nothing is missing."""
    shown = tmp_path / "shown"
    done = tools.run(
        "timeout", "60", tools.GSTREAMER, "-q", "filesrc", f"location={recording}", "!", "qtdemux", "name=d",
        "d.video_0", "!", "queue", "!", "decodebin", "!", "videoconvert", "!", "video/x-raw,format=GRAY8", "!",
        "videoscale", "!", "video/x-raw,width=8,height=8", "!", "filesink", f"location={shown}",
        "d.audio_0", "!", "queue", "!", "decodebin", "!", "fakesink", "sync=false", timeout=70)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert shown.stat().st_size == FRAMES * 64


@pytest.mark.skipif(not tools.GSTREAMER, reason="gst-launch-1.0 is missing")
@pytest.mark.parametrize("of", ["file", "address"])
def test_gstreamer_plays_the_file(server, seen, recording, of):
    """Also by HTTP, with byte ranges."""
    uri = recording.as_uri() if of == "file" else f"{server.web}/recordings/cam/{seen.name}.mp4"
    done = tools.run(
        "timeout", "30", tools.GSTREAMER, "-q", "playbin3", f"uri={uri}", "video-sink=fakesink sync=false",
        "audio-sink=fakesink sync=false", timeout=40)
    assert done.returncode == 0 and not done.stderr, done.stderr


@pytest.mark.skipif(not tools.GSTREAMER, reason="gst-launch-1.0 is missing")
def test_gstreamer_plays_the_replay(server, seen):
    done = tools.run(
        "timeout", "30", tools.GSTREAMER, "-q", "playbin3", f"uri={server.web}/recordings/cam/{seen.name}/index.m3u8",
        "video-sink=fakesink sync=false", "audio-sink=fakesink sync=false", timeout=40)
    assert done.returncode == 0, done.stderr


def test_a_server_that_starts_anew_replays_the_same_bytes(server, seen, start, recording):
    again = start("--record", server.recordings)
    for (rendition, number), body in seen.live.items():
        assert again.get(f"/recordings/cam/{seen.name}/{rendition}/{number}.m4s").good().body == body
    for document in ("av/index.m3u8", "manifest.mpd"):
        path = f"/recordings/cam/{seen.name}/{document}"
        assert again.get(path).text == server.get(path).text


# MARK: Clips


def frame_hashes(path) -> list[str]:
    """Every shown frame, as a checksum of its pixels."""
    done = tools.run(tools.FFMPEG, "-v", "error", "-i", path, "-map", "0:v", "-vsync", "passthrough", "-f", "framemd5", "-")
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return [line.split(",")[-1].strip() for line in done.stdout.splitlines() if not line.startswith("#")]


@pytest.fixture(scope="module")
def shown(recording) -> list[str]:
    """The frames of the whole recording."""
    found = frame_hashes(recording)
    assert len(found) == FRAMES and len(set(found)) == FRAMES
    return found


@pytest.mark.parametrize("begin, end, frames", [
    (4, 6, 60), (4.5, 9, 135), (2.0333, 2.1, 2), (7.9667, 8.0333, 2), (0, 16, 480), (13.2, None, 84)])
def test_a_clip_shows_the_very_frames(server, seen, shown, tmp_path, begin, end, frames):
    to = "" if end is None else f"&to={end}"
    answer = server.get(f"/api/v1/recordings/cam/{seen.name}.mp4/clip?from={begin}{to}").good()
    assert int(answer.headers["content-length"]) == len(answer.body)
    path = tmp_path / "clip.mp4"
    path.write_bytes(answer.body)
    assert [box.type for box in boxes.read_boxes(answer.body)][:2] == [b"ftyp", b"moov"]
    first = round(begin * 30)
    assert frame_hashes(path) == shown[first:first + frames]
    probe = json.loads(tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_type,duration,start_time",
                                 "-of", "json", path).stdout)["streams"]
    length = frames / 30
    assert abs(float(answer.headers["weir-clip-seconds"]) - max(float(stream["duration"]) for stream in probe)) < 0.002
    for stream in probe:
        assert float(stream["start_time"]) == 0
        assert abs(float(stream["duration"]) - length) < 0.045, stream


def test_a_clip_of_a_recording_in_the_making_is_whole(seen, shown, tmp_path):
    path = tmp_path / "clip.mp4"
    path.write_bytes(seen.clip)
    assert frame_hashes(path) == shown[75:180]


def test_a_clip_is_asked_for_by_ranges_and_by_utc_times(server, seen, recording):
    path = f"/api/v1/recordings/cam/{seen.name}.mp4/clip?from=3&to=5"
    whole = server.get(path).good()
    for first, last in ((0, 99), (1000, 60_000), (len(whole.body) - 10, len(whole.body) - 1)):
        part = server.get(path, headers={"Range": f"bytes={first}-{last}", "If-Range": whole.headers["etag"]})
        assert part.status == 206 and part.body == whole.body[first:last + 1]
    text = server.get(f"/recordings/cam/{seen.name}/av/index.m3u8").text
    began = re.search(r"PROGRAM-DATE-TIME:(\S+)T(\d\d):(\d\d):(\d\d\.\d+)Z", text)
    seconds = int(began[2]) * 3600 + int(began[3]) * 60 + float(began[4])

    def utc(offset):
        at = seconds + offset
        return f"{began[1]}T{int(at // 3600):02}:{int(at // 60 % 60):02}:{at % 60:06.3f}Z"

    if seconds + 5 < 86_400:
        by_clock = server.get(path.split("?")[0] + f"?from={utc(3)}&to={utc(5)}").good()
        # The clock's text has milliseconds: the same frames, with an end that differs by a millisecond.
        assert abs(len(by_clock.body) - len(whole.body)) < 20_000
        # The same time in another zone; an end beyond the end of the recording.
        hour = datetime.datetime.fromisoformat(utc(3).replace("Z", "+00:00")) + datetime.timedelta(hours=1)
        zoned = urllib.parse.quote(hour.isoformat(timespec="milliseconds").replace("+00:00", "+01:00"))
        same = server.get(path.split("?")[0] + f"?from={zoned}&to={utc(5)}").good()
        assert same.body == by_clock.body
        assert server.get(f"/api/v1/recordings?from={zoned}").status == 200
    rest = server.get(path.split("?")[0] + "?from=3").good()
    assert server.get(path.split("?")[0] + "?from=3&to=9999-12-31T23:59:59Z").good().body == rest.body
    for bad, status in (("from=5&to=3", 400), ("from=x", 400), ("from=1h", 400), ("from=99", 404),
                        ("from=9999-12-31T23:59:59Z", 404), ("to=0001-01-01T00:00:00Z", 400)):
        assert server.get(path.split("?")[0] + "?" + bad).status == status
    assert server.get("/api/v1/recordings/cam/20200101T000000Z.mp4/clip").status == 404


def length(path) -> float:
    """Duration of a movie, in seconds."""
    return float(tools.run(tools.FFPROBE, "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", path).stdout)


def test_a_clip_lasts_four_hours_at_most(start, tmp_path):
    """Longer clips are refused with the same reason by every interface. The limit itself is allowed."""
    left = tmp_path / "recordings" / "cam" / "20261121T072410Z.part.mp4"
    left.parent.mkdir(parents=True)
    made = tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=64x64:rate=1/5:duration=18000", "-c:v",
                     "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "12", "-movflags",
                     "frag_keyframe+empty_moov+default_base_moof", left)
    assert made.returncode == 0, made.stderr
    weir = start("--record", left.parent.parent)
    weir.wait(lambda: not left.exists(), 10, "it is finished")
    path = "/api/v1/recordings/cam/20261121T072410Z.mp4/clip"
    refused = set()
    for asked in ("", "?from=0&to=18000", "?from=0&to=14405", "?to=999999999", "?from=3599"):
        answer = weir.get(path + asked)
        assert answer.status == 400, f"{asked}: {answer.status}"
        refused.add(answer.body)
    assert len(refused) == 1
    problem = json.loads(refused.pop())
    assert problem["detail"] == "A clip lasts at most 4 h." and "weir record clip" in str(problem)
    for asked, seconds in (("?from=0&to=14400", 14_400), ("?from=3600", 14_400), ("?from=17000&to=99999", 1000)):
        clip = tmp_path / "clip.mp4"
        clip.write_bytes(weir.get(path + asked).good().body)
        assert length(clip) == pytest.approx(seconds, abs=1)
    assert weir.get(path + "?from=18001").status == 404
    # Another program's file has no wall clock in it. Its file name is used in messages.
    by_clock = weir.get(path + "?from=2026-11-21T12:07:30Z").good().body
    assert by_clock == weir.get(path + "?from=17000").good().body
    (clock,) = weir.get(path.replace("/clip", "/keyframes")).good().json["clock"]
    assert clock == {"at": 0, "time": "2026-11-21T07:24:10.000Z"}
    assert "PROGRAM-DATE-TIME:2026-11-21T07:24:10.000Z" in weir.get(
        "/recordings/cam/20261121T072410Z/av/index.m3u8").good().text
    # With access to the file, a clip of any length can be cut.
    out = tmp_path / "all.mp4"
    done = tools.run(tools.weir_binary(), "record", "clip", left.with_name("20261121T072410Z.mp4"), "-o", out)
    assert done.returncode == 0 and length(out) == pytest.approx(18_000, abs=1)


# MARK: Without recording


def test_without_recording_a_time_shift_buffer_is_rewound_to_and_nothing_is_left_of_it(start):
    weir = start("--no-record", "--window", "2s", "--segment-duration", "500ms", "--rewind", "10m", "--source",
                 f"demo=file:{sources.source('half-seconds')}")
    weir.wait_state("demo", "live", seconds=30)
    epoch = re.search(r"^(\w+)/av/dvr.m3u8$", weir.get("/live/demo/dvr.m3u8").good().text, re.M)[1]
    first = weir.get(f"/live/demo/{epoch}/av/1.m4s").good().body

    def gone():
        # Twice the window and more, which is not shorter than five seconds: the segment has left the memory.
        return len(numbers(weir.get(f"/live/demo/{epoch}/av/dvr.m3u8").text)) >= 22

    weir.wait(gone, 60, "22 segments", every=0.2)
    listed = numbers(weir.get(f"/live/demo/{epoch}/av/index.m3u8").text)
    assert min(listed) > 4 and weir.get(f"/live/demo/{epoch}/av/1.m4s").good().body == first
    files = subprocess.run(["ls", "-l", f"/proc/{weir.process.pid}/fd"], capture_output=True, text=True).stdout
    assert re.search(r"/var/tmp/\S+ \(deleted\)", files)


def test_going_back_survives_a_stop_and_a_start_of_the_recording(start):
    token = "sesame-rewind-0815"
    weir = start("--window", "2s", "--segment-duration", "500ms", "--rewind", "10m", environment={"WEIR_ADMIN_TOKEN": token})
    weir.secrets.append(token)
    publisher = publishers.ffmpeg("half-seconds", weir.rtmp + "/live/cam", loop=-1)
    try:
        weir.wait_state("cam", "live", seconds=20)

        def programme() -> str:
            epoch = re.search(r"^(\w+)/av/dvr.m3u8$", weir.get("/live/cam/dvr.m3u8").good().text, re.M)[1]
            return weir.get(f"/live/cam/{epoch}/av/dvr.m3u8").text

        def reach(number: int) -> None:
            weir.wait(lambda: max(numbers(programme()), default=0) >= number, 40, f"segment {number}", every=0.3)

        weir.wait(lambda: weir.get("/live/cam/dvr.m3u8").status == 200, 20, "a programme")
        reach(4)
        bodies = {}
        for action, until in (("stop", 9), ("start", 14), ("cancel", 19)):
            weir.get(
                f"/api/v1/streams/cam/recording/{action}?wait=20s", method="POST", headers={"Authorization": f"Bearer {token}"}).good()
            while numbers(programme())[-1] < until:
                text = programme()
                assert "#EXT-X-PLAYLIST-TYPE:EVENT\n" in text and "#EXT-X-GAP" not in text
                assert numbers(text) == list(range(1, len(numbers(text)) + 1))
                epoch = re.search(r"^(\w+)/av/dvr.m3u8$", weir.get("/live/cam/dvr.m3u8").text, re.M)[1]
                for number in set(numbers(text)) - set(bodies):
                    bodies[number] = weir.get(f"/live/cam/{epoch}/av/{number}.m4s").good().body
                time.sleep(0.2)
        for number, body in bodies.items():
            assert weir.get(f"/live/cam/{epoch}/av/{number}.m4s").good().body == body, f"segment {number} has changed"
        assert len(bodies) >= 12
    finally:
        publisher.kill()


# MARK: The command line


def weir_command(*arguments) -> subprocess.CompletedProcess:
    return tools.run(tools.weir_binary(), "record", *arguments)


FLAGS = {
    "base-data-offset": "frag_keyframe+empty_moov", "default-base": "frag_keyframe+empty_moov+default_base_moof",
    "cmaf": "cmaf+frag_keyframe+empty_moov", "delayed": "frag_keyframe+delay_moov",
    "hybrid": "hybrid_fragmented+frag_keyframe+empty_moov",
}


@pytest.mark.parametrize("way", ["base-data-offset", "default-base", "cmaf", "delayed"])
def test_fragmented_files_of_ffmpeg_are_checked_cut_and_finished(way, tmp_path):
    path = tmp_path / "film.mp4"
    made = tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source(FILM), "-c", "copy", "-movflags", FLAGS[way], path)
    assert made.returncode == 0, made.stderr
    shown = counts(path)["video"]
    checked = weir_command("verify", "--json", path)
    assert checked.returncode == 0 and json.loads(checked.stdout)[0]["kind"] == "fragmented"
    cut = tmp_path / "cut.mp4"
    done = weir_command("clip", path, "--from", "3.1", "--to", "5", "-o", cut)
    assert done.returncode == 0, done.stdout
    assert counts(cut)["video"] == 57
    assert weir_command("clip", path, "--from", "3", "-o", cut).returncode == 1, "it wrote over a file"
    # It had no wall clock in it; a recording's name does.
    times = ("--from", "2026-11-21T07:24:13.1Z", "--to", "2026-11-21T07:24:15Z", "-o", tmp_path / "by-clock.mp4")
    refused = weir_command("clip", path, *times)
    assert refused.returncode == 1 and "contains a time of day" in refused.stdout and "seconds" in refused.stdout
    named = tmp_path / "20261121T072410Z.mp4"
    named.symlink_to(path)
    assert weir_command("clip", named, *times).returncode == 0
    assert counts(tmp_path / "by-clock.mp4")["video"] == 57
    done = weir_command("finalize", path)
    assert done.returncode == 0 and "is an ordinary movie now" in done.stdout, done.stdout
    assert [box.type for box in boxes.read_boxes(path.read_bytes())] == [b"ftyp", b"moov", b"free", b"mdat"]
    assert counts(path)["video"] == shown
    assert json.loads(weir_command("verify", "--json", path).stdout)[0] | {"wholeBytes": 0} == {
        "file": str(path), "ok": True, "kind": "finished", "wholeBytes": 0, "tornBytes": 0, "holes": 0,
        "comparedFragments": 0, "damagedFragments": 0,
        **{key: json.loads(checked.stdout)[0][key] for key in ("fragments", "samples", "seconds")}}


def test_a_hybrid_file_whose_writer_was_killed_is_checked_cut_and_finished(tmp_path):
    """As written by OBS (from 30.2 on) and ffmpeg: fragmented until closed, with an `ftyp` hidden in a `free`."""
    path = tmp_path / "film.mp4"
    writer = subprocess.Popen(
        [tools.new_ffmpeg(), "-v", "error", "-re", "-i", sources.source(FILM), "-c", "copy", "-flush_packets", "1",
         "-movflags", FLAGS["hybrid"], path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while time.monotonic() < end and (not path.exists() or path.read_bytes().count(b"moof") < 2):
        time.sleep(0.05)
    writer.kill()
    said = writer.communicate()[1].decode()
    if "hybrid_fragmented" in said:
        pytest.skip("skipped: this ffmpeg writes no hybrid files")
    checked = json.loads(weir_command("verify", "--json", path).stdout)[0]
    assert checked["kind"] == "fragmented" and checked["fragments"] >= 1
    assert weir_command("clip", path, "--from", "0.5", "--to", "1", "-o", tmp_path / "cut.mp4").returncode == 0
    shown = counts(tmp_path / "cut.mp4")["video"]
    done = weir_command("finalize", path)
    assert done.returncode == 0, done.stdout
    after = json.loads(weir_command("verify", "--json", path).stdout)[0]
    assert after["ok"] and after["kind"] == "finished" and after["samples"] == checked["samples"]
    assert shown == 15 and sum(counts(path).values()) > 0


def test_a_file_that_is_still_being_written_is_left_alone(tmp_path):
    """Bytes inserted at the front would shift the file under ffmpeg, which continues to write at its old position."""
    path = tmp_path / "film.mp4"
    writer = subprocess.Popen(
        [tools.FFMPEG, "-v", "error", "-re", "-i", sources.source(FILM), "-t", "8", "-c", "copy", "-flush_packets", "1",
         "-movflags", FLAGS["default-base"], path], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while time.monotonic() < end and (not path.exists() or path.read_bytes().count(b"moof") < 2):
        time.sleep(0.05)
    # It stands still meanwhile, so that it is not done before weir looks at its file.
    writer.send_signal(signal.SIGSTOP)
    try:
        assert writer.poll() is None
        done = weir_command("finalize", path)
    finally:
        writer.send_signal(signal.SIGCONT)
    assert done.returncode == 1 and "open in another program" in done.stdout, done.stdout
    assert writer.wait(30) == 0 and writer.communicate()[1] == b""
    checked = json.loads(weir_command("verify", "--json", path).stdout)[0]
    assert checked["ok"] and checked["kind"] == "fragmented"
    assert counts(path)["video"] == 240
    assert weir_command("finalize", path).returncode == 0
    assert counts(path)["video"] == 240


def test_damaged_media_is_found_by_its_checksums(recording, tmp_path):
    """Wrong bytes from a disk, in the middle of the media: no head can detect them."""
    assert "all checksums right" in weir_command("verify", recording).stdout
    data = bytearray(recording.read_bytes())
    middle = len(data) // 2
    for at in range(middle, middle + 2000):
        data[at] ^= 0x5A
    damaged = tmp_path / "damaged.mp4"
    damaged.write_bytes(data)
    done = weir_command("verify", damaged)
    assert done.returncode == 1 and "checksums are wrong" in done.stdout, done.stdout
    told = json.loads(weir_command("verify", "--json", damaged).stdout)[0]
    assert not told["ok"] and 0 < told["damagedFragments"] < told["comparedFragments"]
    heads = json.loads(weir_command("verify", "--json", "--heads", recording).stdout)[0]
    assert heads["ok"] and heads["comparedFragments"] is None


def test_what_cannot_be_worked_on_is_said(tmp_path):
    film = sources.source(FILM)
    torn = tmp_path / "torn.mp4"
    torn.write_bytes(film.read_bytes()[:100_000])
    done = weir_command("finalize", torn)
    assert done.returncode == 1 and "no moov" in done.stdout and "Fatal" not in done.stderr
    mixed = tmp_path / "mixed.mp4"
    tools.run(tools.FFMPEG, "-v", "error", "-i", film, "-c", "copy", "-movflags", "frag_keyframe", mixed)
    before = mixed.read_bytes()
    for words in (("verify", mixed), ("finalize", mixed), ("clip", mixed, "-o", tmp_path / "cut.mp4")):
        done = weir_command(*words)
        assert done.returncode == 1 and "besides those in fragments" in done.stdout, f"{words}: {done.stdout}"
    assert mixed.read_bytes() == before
    text = tmp_path / "text.mp4"
    text.write_bytes(bytes(range(256)) * 16)
    assert "that is no MP4" in weir_command("verify", text).stdout
    assert weir_command("verify", film).returncode == 0
    cut = weir_command("clip", film, "--from", "1", "-o", tmp_path / "cut.mp4")
    assert cut.returncode == 1 and "an ordinary MP4" in cut.stdout and not (tmp_path / "cut.mp4").exists()
    assert weir_command("verify", tmp_path / "nothing.mp4").returncode == 1


def test_a_damaged_end_is_found_and_cut_off(seen, recording, tmp_path):
    data = recording.read_bytes()
    inner = data[data.index(b"mdat", 0) - 4:]
    start = next(box.start for box in boxes.read_boxes(data) if box.type == b"mdat") + 16
    fragmented = data[start:]
    torn = tmp_path / "torn.mp4"
    torn.write_bytes(fragmented[:-70_001])
    checked = json.loads(weir_command("verify", "--json", torn).stdout)[0]
    assert not checked["ok"] and checked["tornBytes"] > 0 and inner
    assert weir_command("finalize", torn).returncode == 0
    assert weir_command("verify", torn).returncode == 0
    assert 0 < counts(torn)["video"] < FRAMES
