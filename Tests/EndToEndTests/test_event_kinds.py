"""Events of each kind: who and what they name, what goes wrong, devices that go away and come back; and what a log without a state
folder says."""

import http.client
import signal
import time
import urllib.parse

from harness import disks, publishers
from harness.events import ADMIN, SECRET, TOKEN, Receiver, configured, wait
from harness.rawrtmp import RawRTMP
from test_capture import SLATE


def test_a_full_server_and_a_full_disk_are_told(start, follow):
    weir = start("--max-viewers", "1", "--keep-free", "900000GB", "--admin-token", TOKEN)
    events = follow(weir.web)
    publisher = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        weir.wait_state("cam", "live")
        watching = http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(weir.web).port, timeout=10)
        watching.request("GET", "/live/cam/stream.mp4")
        assert watching.getresponse().status == 200
        refused = weir.get("/live/cam/stream.mp4", headers={"User-Agent": "another"})
        assert refused.status == 503 and refused.headers["retry-after"]
        events.wait(lambda self: {"viewers.refused", "disk.low"} <= {event["kind"] for _, event in self.events})
        told = {event["kind"]: event for _, event in events.events}
        assert told["viewers.refused"]["stream"] == "cam" and told["viewers.refused"]["data"]["maxViewers"] == 1
        assert told["viewers.refused"]["who"].startswith("127.0.0.1")
        disk = told["disk.low"]["data"]
        assert 0 < disk["freeBytes"] < disk["keepFreeBytes"] == 900_000 * 10**9 and disk["folder"] == str(weir.recordings)
        watching.close()
    finally:
        publisher.kill()
        events.close()


def test_each_kind_says_who_and_what(start, tmp_path, follow):
    """What test_events.py does not see: resumed, warned, reloaded, deleted, salvaged, and who caused it."""
    flags = configured(tmp_path)
    weir = start(*flags, "--reconnect-window", "20s", "--target-duration", "2", "--retain-deleted", "1h")
    events = follow(weir.web)

    def told(kind: str) -> dict:
        events.wait(lambda all: any(event["kind"] == kind for _, event in all.events), 20)
        return next(event for _, event in events.events if event["kind"] == kind)

    # Two encoders, one after the other: the first is lost. Audio that cannot be used is warned of.
    publisher = publishers.ffmpeg(
        "h264-30", f"{weir.rtmp}/live/cam", loop=-1, options=("-c:a", "adpcm_swf", "-ar", "44100"))
    try:
        weir.wait_state("cam", "live")
        assert "ADPCM" in told("stream.warned")["data"]["warning"]
    finally:
        publisher.kill()
    assert told("stream.interrupted")["who"].startswith("127.0.0.1")
    again = publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", loop=-1)
    try:
        assert told("stream.resumed")["stream"] == "cam"
        weir.wait_state("cam", "live")
        weir.wait(lambda: any(r["state"] == "running" and r["seconds"] > 1 for r in weir.recordings_of("cam")), 15, "a recording")
        weir.get("/api/v1/streams/cam", method="DELETE", headers=ADMIN).good()
        assert told("stream.ended")["who"] == "127.0.0.1"
    finally:
        again.kill()
    file = told("recording.stored")["data"]["file"]
    weir.get(f"/api/v1/recordings/cam/{file}", method="DELETE", headers=ADMIN).good()
    deleted = told("recording.deleted")
    assert (deleted["who"], deleted["data"]["file"], deleted["data"]["reason"]) == ("127.0.0.1", file, "a client deleted it")
    weir.get("/api/v1/settings/reload", method="POST", headers=ADMIN).good()
    assert told("settings.reloaded")["who"] == "127.0.0.1"
    weir.send(signal.SIGHUP)
    events.wait(lambda all: [e["who"] for _, e in all.events if e["kind"] == "settings.reloaded"] == ["127.0.0.1", "SIGHUP"])


def test_a_recording_that_a_kill_left_is_told_as_salvaged(supervise, tmp_path):
    service = supervise(*configured(tmp_path), "--record", tmp_path / "recordings", "--reconnect-window", "1s")
    publisher = publishers.ffmpeg("h264-30", f"{service.rtmp}/live/cam", loop=-1)
    try:
        wait(lambda: any(one["state"] == "running" and one["seconds"] > 1
                         for one in service.get("/api/v1/recordings", headers=ADMIN).json["recordings"]), 20)
    finally:
        # The server first: a stream whose publisher left for a second is over, and its recording complete.
        service.process.send_signal(signal.SIGKILL)
        publisher.kill()
    service.wait_ready(2)

    def salvaged() -> list[dict]:
        return service.get("/api/v1/events?kind=recording.salvaged", headers=ADMIN).good().json["events"]

    wait(lambda: salvaged(), 20)
    (event,) = salvaged()
    assert (tmp_path / "recordings" / "cam" / event["data"]["file"]).exists() and event["who"] is None


def test_a_recording_that_fails_is_told_with_its_reason_and_the_next_one_begins(start, tmp_path, follow):
    """The disk refuses the second write of a thread that records. Without a viewer nothing else calls sendfile."""
    disks.needs("strace", root=False)
    receiver = Receiver()
    wrapper = ("strace", "-D", "-f", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=sendfile", "-e", "inject=sendfile:error=EIO:when=2")
    weir = start(*configured(tmp_path, {"name": "site", "on": "recording.failed", "url": receiver.url, "secret": SECRET}),
                 "--keep-free", "0MB", "--record-sync", "200ms", wrapper=wrapper, patience=30)
    weir.secrets += [SECRET, "geheim"]
    events = follow(weir.web, "?kind=recording.*")
    publisher = publishers.ffmpeg("short", f"{weir.rtmp}/live/cam", loop=-1, rate=4)

    def told() -> list[str]:
        return events.kinds("cam")

    try:
        events.wait(lambda self: "recording.failed" in told() and told().count("recording.started") >= 2, 30)
    finally:
        publisher.interrupt()
        publisher.outcome(10)
    events.wait(lambda self: told().count("recording.stored") >= 1 and told()[-1] in ("recording.stored", "recording.failed"), 20)

    def failures() -> list[dict]:
        return [event for _, event in events.events if event["kind"] == "recording.failed"]

    # Each once, also at the receiver. The last may come after the end of another.
    wait(lambda: failures() and [event for _, event in receiver.taken] == failures(), 10, weir.tail)
    failed = failures()
    begun = [event["data"]["file"] for _, event in events.events if event["kind"] == "recording.started"]
    assert told()[0] == "recording.started" and told().index("recording.failed") < len(told()) - 1
    for event in failed:
        assert "Input/output error" in event["data"]["reason"] and event["who"] is None and event["stream"] == "cam"
        assert event["data"]["file"] in begun and event["data"]["url"] == f"/recordings/cam/{event['data']['file']}"
        # The API tells the same of that file, and it is there.
        known = weir.wait(lambda event=event: next((r for r in weir.recordings_of("cam") if r["file"] == event["data"]["file"]), None), 10,
                          "the file in the list")
        assert (known["state"], known["reason"], known["startedAt"]) == ("failed", event["data"]["reason"], event["data"]["startedAt"])
        assert weir.get(event["data"]["url"], method="HEAD").status == 200
    assert len({event["data"]["file"] for event in failed}) == len(failed)
    receiver.close()


def test_a_device_that_goes_away_and_comes_back_is_told(start, tmp_path, follow):
    """ALSA reads the microphone from a file: without the file there is no device. (Tests/Devices has cameras that are unplugged.)"""
    sound = tmp_path / "sound.raw"
    (tmp_path / "alsa.conf").write_text(
        f'pcm.desk {{ type file slave.pcm {{ type null }} file "/dev/null" infile "{sound}" format "raw" }}\n')
    weir = start("--source", f"cam={SLATE},alsa:desk", "--no-record", "--admin-token", TOKEN,
                 environment={"ALSA_CONFIG_PATH": str(tmp_path / "alsa.conf")})
    # From the beginning: what was away at the start is told as well.
    events = follow(weir.web, "?kind=source.away,source.back&after=0")

    def told(kind: str) -> list[dict]:
        return [event for _, event in events.events if event["data"]["deviceKind"] == kind]

    events.wait(lambda self: told("camera") and told("microphone"))
    (camera,) = told("camera")
    assert (camera["kind"], camera["stream"], camera["who"], camera["data"]["device"]) == ("source.away", "cam", None, "/dev/video63")
    assert "there is no camera /dev/video63" in camera["data"]["reason"]
    assert [event["kind"] for event in told("microphone")] == ["source.away"]
    assert (told("microphone")[0]["data"]["device"], told("microphone")[0]["data"]["reason"].split(";")[0]) == (
        "desk", "there is no microphone desk")
    time.sleep(2.5)  # real time: a device is tried again each second
    assert len(events.events) == 2, "what stays away is told once"

    def choose(device: str) -> None:
        weir.get("/api/v1/streams/cam/capture/microphone", method="POST", headers=ADMIN, body=f"alsa:{device}".encode()).good()

    sound.write_bytes(bytes(4 * 48_000))
    events.wait(lambda self: len(told("microphone")) == 2, 20)
    assert (told("microphone")[1]["kind"], told("microphone")[1]["data"]["device"], told("microphone")[1]["data"]["reason"]) == (
        "source.back", "desk", None)
    # Another one, which is not there, and the first again.
    for device, kind in (("missing", "source.away"), ("desk", "source.back")):
        count = len(told("microphone"))
        choose(device)
        events.wait(lambda self, count=count: len(told("microphone")) == count + 1, 20)
        assert (told("microphone")[-1]["kind"], told("microphone")[-1]["data"]["device"]) == (kind, device)
    choose("missing")
    events.wait(lambda self: len(told("microphone")) == 5, 20)
    assert weir.stream("cam")["state"] == "live" and len(told("camera")) == 1
    # A source that was stopped has no device that could come back.
    sound.unlink()
    weir.get("/api/v1/sources/cam/stop", method="POST", headers=ADMIN).good()
    weir.wait(lambda: weir.get("/api/v1/sources/cam", headers=ADMIN).json["state"] == "stopped", 15, "its end")
    count = len(events.events)
    time.sleep(2)  # real time: a device is tried again each second
    assert len(events.events) == count


def test_without_a_state_folder_events_end_with_the_process_and_api_and_log_say_so(start, follow):
    weir = start("--no-record", "--admin-token", TOKEN)
    weir.wait_log("events are kept in memory alone and end with this process: there is no state folder")
    with RawRTMP(weir.rtmp).start("cam") as client:
        client.finish()
    page = weir.wait(lambda: (page := weir.get("/api/v1/events?after=0", headers=ADMIN).good().json)["events"] and page, 15, "events")
    assert page["durable"] is False
    last = page["events"][-1]["id"]
    weir.stop()
    again = start("--no-record", "--admin-token", TOKEN)
    # Ids begin with the time: that of the former process is known as one whose successors are not kept.
    page = again.get(f"/api/v1/events?after={last}", headers=ADMIN).good().json
    assert page["gap"]["after"] == last < page["gap"]["from"] and not page["events"] and page["durable"] is False, page
    first = page["gap"]["from"]
    behind = follow(again.web, last=last)
    wait(lambda: behind.gaps, 15)
    assert behind.gaps == [{"after": last, "from": first}]
    with RawRTMP(again.rtmp).start("cam") as client:
        client.finish()
    page = again.wait(lambda: (page := again.get("/api/v1/events?after=0", headers=ADMIN).good().json)["events"] and page, 15, "events")
    assert page["events"][0]["id"] == first and page["gap"] is None
    wait(lambda: behind.events, 15)
    assert behind.events[0][1]["id"] == first
