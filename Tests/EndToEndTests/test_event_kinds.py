"""Events of what goes wrong: recordings that fail, devices that go away and come back; and what a log without a state folder says."""

import time

import pytest

from harness import disks, publishers
from harness.rawrtmp import RawRTMP
from test_capture import SLATE
from test_events import ADMIN, SECRET, TOKEN, Receiver, Stream, configured, play, wait


@pytest.fixture
def follow():
    made: list[Stream] = []

    def make(*parts, **more) -> Stream:
        made.append(Stream(*parts, **more))
        return made[-1]

    yield make
    for stream in made:
        stream.close()


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
    failed = [event for _, event in events.events if event["kind"] == "recording.failed"]
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
    # Each once, also at the receiver.
    assert len({event["data"]["file"] for event in failed}) == len(failed)
    wait(lambda: len(receiver.taken) >= len(failed), 10, weir.tail)
    assert [event for _, event in receiver.taken] == failed
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
    time.sleep(2.5)
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
    time.sleep(1.5)
    count = len(events.events)
    time.sleep(2)
    assert len(events.events) == count


def test_without_a_state_folder_events_end_with_the_process_and_api_and_log_say_so(start):
    weir = start("--no-record", "--admin-token", TOKEN)
    weir.wait_log("events are kept in memory alone and end with this process: there is no state folder")
    with RawRTMP(weir.rtmp).start("cam") as client:
        client.finish()
    page = weir.wait(lambda: (page := weir.get("/api/v1/events?after=0", headers=ADMIN).good().json)["events"] and page, 5, "events")
    assert page["durable"] is False
    last = page["events"][-1]["id"]
    weir.stop()
    again = start("--no-record", "--admin-token", TOKEN)
    page = again.get(f"/api/v1/events?after={last}", headers=ADMIN)
    # Ids begin with the time: that of the former process is known as one whose successors are gone, or as none at all.
    assert page.status == 400 or page.json["gap"] or not page.json["events"], page.text
    with RawRTMP(again.rtmp).start("cam") as client:
        client.finish()
    page = again.wait(lambda: (page := again.get("/api/v1/events?after=0", headers=ADMIN).good().json)["events"] and page, 5, "events")
    assert page["events"][0]["id"] > last
