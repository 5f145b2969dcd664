"""Recordings of sources that weir runs itself: started and stopped separately, on air or off."""

import subprocess

import pytest

from harness import http, tools
from test_capture import TOKEN, activity, own, packets

#: Frames of the clip, and of one GOP.
FRAMES, GROUP = 120, 15


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    """A file and a test pattern, both live. Nothing is recorded automatically."""
    clip = tmp_path_factory.mktemp("studio") / "clip.mp4"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=30", "-f", "lavfi", "-i",
              "anoisesrc=color=pink:seed=7:amplitude=0.3:sample_rate=48000", "-t", "4", "-c:v", "libx264", "-preset",
              "veryfast", "-pix_fmt", "yuv420p", "-bf", "2", "-g", GROUP, "-sc_threshold", "0", "-c:a", "aac", clip)
    weir = start_shared("--source", f"loop=file:{clip}", "--source", "demo=test", "--admin-token", TOKEN, "--record-mode",
                        "manual")
    weir.clip = packets(clip)
    assert len(weir.clip["video"]) == FRAMES
    weir.wait_state("loop", "live")
    return weir


def recording(weir, name: str = "loop") -> dict | None:
    return own(weir, f"/{name}").good().json["recording"]


def record(weir, action: str, name: str = "loop"):
    return own(weir, f"/{name}/recording/{action}?wait=20s", "POST")


def go(weir, where: str, stream: str) -> None:
    """On air, off air, or stopped."""
    own(weir, f"/loop/{where}?wait=20s", "POST").good()
    weir.wait_state("loop", stream)


def running(weir, seconds: float) -> None:
    weir.wait(lambda: recording(weir)["state"] == "running" and recording(weir)["seconds"] >= seconds, 20,
              f"{seconds} s of a recording")


def stored(weir):
    """The newest recording, once it is stored."""
    weir.wait(lambda: recording(weir)["state"] == "completed", 15, "a stored recording")
    return weir.recordings / recording(weir)["file"]


def judge(weir, path) -> int:
    """Checks every frame of the clip in turn, from a key frame on, decoded, and audio without a hole. Returns their number."""
    found = packets(path)
    frames = [seen for _, _, seen in found["video"]]
    known = {seen: number for number, (_, _, seen) in enumerate(weir.clip["video"])}
    first = known[frames[0]]
    assert first % GROUP == 0, "it begins with a key frame"
    assert frames == [weir.clip["video"][(first + n) % FRAMES][2] for n in range(len(frames))]
    for kind in ("video", "audio"):
        assert len({b[0] - a[0] for a, b in zip(found[kind], found[kind][1:])}) == 1, f"a gap in {kind}"
    decoded = tools.run(tools.FFPROBE, "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                        "stream=nb_read_frames", "-of", "csv=p=0", path)
    assert decoded.stderr == "" and int(decoded.stdout.strip(",\n")) == len(frames)
    listed = tools.run(tools.FFPROBE, "-v", "trace", path).stderr
    assert listed.index("type:'moov'") < listed.index("type:'mdat'"), "an ordinary movie"
    return len(frames)


def test_off_the_air_a_source_is_recorded_and_not_shown(weir):
    go(weir, "preview", "ended")
    before = len(weir.recordings_of("loop"))
    assert record(weir, "start").good().json["recording"]["state"] == "running"
    assert record(weir, "start").status == 409
    running(weir, 1.5)
    assert activity(weir, "loop") == "preview" and weir.stream("loop")["state"] == "ended"
    assert weir.get("/live/loop/stream.mp4").status == 404
    assert len(weir.recordings_of("loop")) == before and weir.stream("loop")["recording"] is None
    address = f"/recordings/{recording(weir)['file']}"
    for path in (address, f"{address[:-4]}/index.m3u8", f"{address[:-4]}/manifest.mpd", f"/api/v1{address}",
                 f"/api/v1{address}/clip?from=0", f"/api/v1{address}/keyframes"):
        assert weir.get(path).status == 404, path
    assert record(weir, "stop").good().json["state"] == "preview"
    assert judge(weir, stored(weir)) >= 40
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("loop")][:1] == ["completed"], 40, "it in the list")
    assert weir.get(address).status == 200 and weir.get(f"{address[:-4]}/index.m3u8").status == 200
    assert record(weir, "stop").status == 409 and record(weir, "cancel").status == 409


def test_going_on_air_and_off_it_cuts_nothing(weir):
    go(weir, "preview", "ended")
    record(weir, "start").good()
    running(weir, 0.5)
    go(weir, "start", "live")
    on_air = recording(weir)["seconds"]
    assert weir.get("/live/loop/index.m3u8").status == 200
    running(weir, on_air + 1)
    go(weir, "preview", "ended")
    running(weir, recording(weir)["seconds"] + 0.5)
    files = len(list((weir.recordings / "loop").glob("*.mp4")))
    record(weir, "stop").good()
    path = stored(weir)
    assert judge(weir, path) >= 60 and recording(weir)["gaps"] == []
    assert len(list((weir.recordings / "loop").glob("*.mp4"))) == files, "one file"


def test_what_is_recorded_on_air_goes_on_off_it_and_ends_with_its_source(weir):
    go(weir, "start", "live")
    record(weir, "start").good()
    running(weir, 0.5)
    go(weir, "preview", "ended")
    running(weir, recording(weir)["seconds"] + 0.5)
    own(weir, "/loop/stop?wait=20s", "POST").good()
    assert judge(weir, stored(weir)) >= 30
    weir.wait(lambda: activity(weir, "loop") == "stopped", 15, "its end")


def test_recording_a_source_that_is_stopped_starts_it_off_the_air(weir):
    go(weir, "start", "live")
    go(weir, "stop", "ended")
    weir.wait(lambda: activity(weir, "loop") == "stopped", 15, "its end")
    told = record(weir, "start").good().json
    assert (told["state"], told["recording"]["state"]) == ("preview", "running")
    running(weir, 0.5)
    assert weir.stream("loop")["state"] == "ended", "viewers are offered nothing"
    assert record(weir, "stop").good().json["recording"]["state"] == "completed"
    assert judge(weir, stored(weir)) >= 15
    assert activity(weir, "loop") == "preview"


def test_a_source_that_cannot_be_read_is_told_when_its_recording_is_begun(start, tmp_path):
    film = tmp_path / "none.mp4"
    film.write_bytes(b"no film at all" * 1000)
    other = start("--source", f"broken=file:{film}", "--admin-token", TOKEN, "--off-air")
    other.wait(lambda: activity(other, "broken") == "stopped", 10, "its end")
    # The recording ends a moment before the source does.
    for _ in range(50):
        answer = record(other, "start", "broken")
        assert answer.status == 409 and str(film) in answer.json["detail"]
    assert own(other, "/broken").good().json["recording"] is None
    assert list(other.recordings.rglob("*.mp4")) == []


def test_what_is_never_recorded_is_named(weir):
    assert "This stream is never recorded" in record(weir, "start", "demo").json["detail"]


def test_what_is_thrown_away_is_gone_and_the_source_goes_on(weir):
    go(weir, "start", "live")
    record(weir, "start").good()
    running(weir, 0.5)
    path = weir.recordings / recording(weir)["file"]
    assert path.with_suffix(".part.mp4").exists()
    told = record(weir, "cancel").good().json
    assert (told["state"], told["recording"]["state"]) == ("live", "cancelled")
    assert not path.exists() and not path.with_suffix(".part.mp4").exists()
    assert weir.stream("loop")["state"] == "live"


@pytest.mark.parametrize("path, method, token, status", [
    ("/loop/recording/start", "POST", None, 401), ("/loop/recording/start", "POST", "wrong", 401),
    ("/loop/recording/start", "GET", TOKEN, 405), ("/loop/recording/pause", "POST", TOKEN, 404),
    ("/nobody/recording/start", "POST", TOKEN, 404), ("/demo/recording/start", "POST", TOKEN, 409),
    ("/demo/recording/stop", "POST", TOKEN, 409),
])
def test_who_may_not_or_asks_for_what_cannot_be_is_refused(weir, path, method, token, status):
    assert own(weir, path, method, token).status == status


def test_administrators_see_a_source_off_the_air_move(weir, tmp_path):
    go(weir, "preview", "ended")
    address = f"{weir.web}/api/v1/sources/loop/preview.mp4"
    assert own(weir, "/loop/preview.mp4", token=None).status == own(weir, "/loop/preview.mp4", token="wrong").status == 401
    for number in range(2):
        path = tmp_path / f"{number}.mp4"
        tools.run(tools.FFMPEG, "-v", "error", "-headers", f"Authorization: Bearer {TOKEN}\r\n", "-t", "1.5", "-i", address, "-c",
                  "copy", path)
        frames = [seen for _, _, seen in packets(path)["video"]]
        known = {seen: number for number, (_, _, seen) in enumerate(weir.clip["video"])}
        first = known[frames[0]]
        assert first % GROUP == 0 and len(frames) >= 30
        assert frames == [weir.clip["video"][(first + n) % FRAMES][2] for n in range(len(frames))]
    assert weir.stream("loop")["state"] == "ended" and weir.get("/live/loop/stream.mp4").status == 404
    # Going on the air neither ends it nor is seen in it.
    path = tmp_path / "across.mp4"
    with subprocess.Popen([tools.FFMPEG, "-v", "error", "-headers", f"Authorization: Bearer {TOKEN}\r\n", "-t", "3", "-i", address,
                           "-c", "copy", "-flush_packets", "1", path]) as watching:
        weir.wait(lambda: path.exists() and path.stat().st_size, 15, "somebody who watches")
        go(weir, "start", "live")
        assert watching.wait(20) == 0
    times = [decoded for decoded, _, _ in packets(path)["video"]]
    assert len(times) > 60 and len({b - a for a, b in zip(times, times[1:])}) == 1, "no gap"
    own(weir, "/loop/stop?wait=20s", "POST").good()
    weir.wait(lambda: activity(weir, "loop") == "stopped", 15, "its end")
    assert own(weir, "/loop/preview.mp4").status == 503
    go(weir, "start", "live")


def test_what_begins_off_the_air_is_not_served_before_it_is_put_on_it(start, weir):
    clip = next(weir.recordings.glob("loop/*.mp4"))
    other = start("--source", f"loop=file:{clip}", "--admin-token", TOKEN, "--off-air")
    other.wait(lambda: own(other, "/loop/preview.jpg").status == 200, 20, "its thumbnail")
    record(other, "start").good()
    running(other, 0.3)
    assert activity(other, "loop") == "preview" and other.stream("loop") is None
    for path in ("index.m3u8", "manifest.mpd", "stream.mp4", "thumbnail.jpg"):
        assert other.get(f"/live/loop/{path}").status == 404, path
    assert "loop" not in other.get("/api/v1/streams").text + other.get("/api/v1/recordings").text
    record(other, "cancel").good()
    go(other, "start", "live")
    assert other.get("/live/loop/index.m3u8").status == 200


def test_in_automatic_mode_what_is_recorded_already_is_not_recorded_with_its_stream(start, weir, tmp_path):
    clip = next(weir.recordings.glob("loop/*.mp4"))
    other = start("--source", f"loop=file:{clip}", "--admin-token", TOKEN)
    other.wait_state("loop", "live")
    other.wait(lambda: other.stream("loop")["recording"]["state"] == "running", 15, "a recording")
    assert record(other, "start").status == 409, "it is recorded with its stream"
    go(other, "preview", "ended")
    other.wait(lambda: [r["state"] for r in other.recordings_of("loop")] == ["completed"], 15, "which ended with it")
    record(other, "start").good()
    running(other, 0.3)
    go(other, "start", "live")
    running(other, recording(other)["seconds"] + 0.5)
    assert len(list((other.recordings / "loop").glob("*.part.mp4"))) == 1
    # A recording started by hand is what was requested.
    address = f"{other.web}/api/v1/streams/loop/recording/start?wait=20s"
    assert http.fetch(address, method="POST", headers={"Authorization": f"Bearer {TOKEN}"}).status == 200
