"""Access for publishers and viewers, parts of a publication that are left out, and where the reason of a refusal is shown."""

import contextlib
import dataclasses
import json
import time

import pytest

from harness import flv, http, packets, publishers, scripts, sources
from harness.rawrtmp import RawRTMP, Refused

TOKEN = "sesame-0815-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
#: Another address of this machine.
ELSEWHERE = "127.0.0.2"
DEMO = ("--source", f"demo=file:{sources.source('loop')}")


@pytest.fixture(scope="module")
def keyed(start_shared, canary):
    """A server with one key for one name, and another key for all names."""
    weir = start_shared("--publish-key", f"cam={canary}-cam", "--publish-key", f"{canary}-all", "--admin-token", TOKEN,
                        "--no-record", "--target-duration", "2")
    weir.secrets += [canary, TOKEN]
    weir.key = lambda which: f"{canary}-{which}"
    return weir


def refusal(weir, name: str, **options) -> str:
    """The response to a refused publisher."""
    with pytest.raises(Refused) as refused, RawRTMP(weir.rtmp, **options) as client:
        client.start(name)
    return refused.value.description


def refusals(weir, query: str = "", **options) -> list[dict]:
    return json.loads(weir.get(f"/api/v1/refusals{query}", **options).good().body)["refusals"]


# MARK: Keys and takeover


def test_a_key_for_all_names_does_not_take_a_live_name_from_another_address(keyed):
    name = f"stage?key={keyed.key('all')}"
    publisher = publishers.ffmpeg("h264-30", f"{keyed.rtmp}/live/{name}", loop=-1)
    try:
        keyed.wait_state("stage", "live")
        assert "is being published by 127.0.0.1" in refusal(keyed, name, source=ELSEWHERE)
        time.sleep(0.5)
        assert keyed.stream("stage")["state"] == "live" and publisher.process.poll() is None
        # The same address may be the same publisher after a lost connection.
        with RawRTMP(keyed.rtmp).start(name) as client:
            publisher.outcome(10)
            client.finish()
    finally:
        publisher.kill()


def test_a_key_for_all_names_takes_a_name_from_who_was_silent_for_three_seconds(keyed):
    name = f"quiet?key={keyed.key('all')}"
    with RawRTMP(keyed.rtmp).start(name) as holder:
        began = time.monotonic()  # before the server can hear it
        holder.tag(scripts.tags_of("short")[0])
        while True:
            with contextlib.suppress(Refused), RawRTMP(keyed.rtmp, source=ELSEWHERE) as client:
                client.start(name).finish()
                break
            assert time.monotonic() - began < 12
            time.sleep(0.2)
        assert time.monotonic() - began > 2.5
        holder.wait_closed(5)


def test_the_newest_with_the_names_own_key_wins_and_other_keys_do_not_open_it(keyed):
    own = f"cam?key={keyed.key('cam')}"
    assert "key is missing or wrong" in refusal(keyed, f"stage?key={keyed.key('cam')}")
    publisher = publishers.ffmpeg("h264-30", f"{keyed.rtmp}/live/{own}", loop=-1)
    try:
        keyed.wait_state("cam", "live")
        assert "is being published" in refusal(keyed, f"cam?key={keyed.key('all')}", source=ELSEWHERE)
        with RawRTMP(keyed.rtmp, source=ELSEWHERE).start(own) as client:
            publisher.outcome(10)
            assert "fighting" in refusal(keyed, own), "one switch in five seconds"
            client.finish()
    finally:
        publisher.kill()


def test_several_keys_come_from_the_environment(start):
    weir = start("--no-record", environment={"WEIR_PUBLISH_KEY": "cam=one,cam=two==,*=three"})
    weir.secrets += ["=one", "two==", "three"]
    for name in ("cam?key=one", "cam?key=two%3D%3D", "other?key=three"):
        with RawRTMP(weir.rtmp).start(name) as client:
            client.finish()
    assert "key is missing or wrong" in refusal(weir, "other?key=one")
    assert weir.json("/api/v1/streams")["publishKeyRequired"] is True


# MARK: Why a publication was refused


def test_the_reason_of_a_refusal_is_in_the_api(keyed):
    refusal(keyed, "wrong?key=guess")
    refusal(keyed, "wrong?key=guess2")
    everything = refusals(keyed, headers=ADMIN)
    entry = next(entry for entry in everything if entry["stream"] == "wrong")
    assert entry["count"] == 2 and entry["protocol"] == "RTMP" and entry["address"].startswith("127.0.0.1:")
    assert "key is missing or wrong" in entry["reason"] and entry["firstAt"] <= entry["lastAt"]
    # A client may ask for a known name. A list of names is not public, because mistyped keys may be among them.
    (public,) = refusals(keyed, "?stream=wrong")
    assert public["address"] is None and public["reason"] == entry["reason"]
    assert keyed.get("/api/v1/refusals").status == 401
    assert "guess" not in keyed.get("/api/v1/refusals", headers=ADMIN).text


def test_a_publication_that_ends_by_what_it_sends_and_one_of_a_bad_name_are_there_too(start):
    weir = start("--no-record")
    with RawRTMP(weir.rtmp).start("cam") as client:
        client.tag(flv.Tag(flv.AUDIO, 0, b"\xb2" + bytes(100)))
        client.wait_closed(5)
    refusal(weir, "a/b")
    bad, ended = weir.wait(lambda: len(found := refusals(weir)) == 2 and found, 20, "both")
    assert ended["stream"] == "cam" and "codec Speex unsupported" in ended["reason"] and ended["address"] is None
    assert bad["stream"] is None and "is not possible" in bad["reason"]


# MARK: What is left out


def test_audio_in_adpcm_leaves_the_video_and_is_told(start):
    weir = start("--target-duration", "2")
    publishers.ffmpeg("h264-30", f"{weir.rtmp}/live/cam", options=("-c:a", "adpcm_swf", "-ar", "44100"), rate=2).wait(30)
    weir.wait_log("cam: .*audio in ADPCM is left out")
    stream = weir.wait_state("cam", "ended")
    assert [track["kind"] for track in stream["tracks"]] == ["video"]
    assert any("audio in ADPCM is left out" in warning for warning in stream["warnings"])
    path = weir.wait(lambda: next(iter((weir.recordings / "cam").glob("2*Z.mp4")), None), 10, "a recording")
    assert [p.digest for p in packets.probe(path)["video"]] == scripts.frames("h264-30")["video"]


def test_a_second_audio_track_is_a_track_of_its_own_and_the_first_is_whole(start):
    """As Enhanced RTMP's Multitrack: one track per message, the further tracks by their numbers."""
    weir = start("--target-duration", "2")
    tags = []
    for tag in scripts.tags_of("short"):
        tags.append(tag)
        if tag.type == flv.AUDIO:
            body = b"\x95" + bytes([tag.body[1]]) + b"mp4a\x01" + tag.body[2:]
            tags.append(dataclasses.replace(tag, body=body))
    scripts.whole(weir.rtmp, "cam", tags)
    stream = weir.wait_state("cam", "ended")
    assert [track["rendition"] for track in stream["tracks"]] == ["video", "audio", "audio-2"] and not stream["warnings"]
    path = weir.wait(lambda: next(iter((weir.recordings / "cam").glob("2*Z.mp4")), None), 10, "a recording")
    found, film = packets.probe(path), scripts.frames("short")
    assert [p.digest for p in found["video"]] == film["video"]
    audio = [p.digest for p in found["audio"]]
    assert audio == [digest for digest in film["audio"] if digest in set(audio)] and len(audio) >= len(film["audio"]) - 2


# MARK: Viewers


def test_an_endless_response_is_a_viewer_for_as_long_as_it_lasts(start):
    weir = start("--max-viewers", "3", "--no-record", *DEMO, "--segment-duration", "1s")
    weir.wait(lambda: weir.get("/live/demo/index.m3u8").status == 200, 20, "a playlist")
    weir.wait(lambda: weir.stream("demo")["viewers"] == 0, 30, "no viewer")
    streams = [http.Stream(f"{weir.web}/live/demo/stream.mp4", headers={"User-Agent": "one and the same"}) for _ in range(3)]
    try:
        assert [stream.status for stream in streams] == [200] * 3
        assert weir.get("/live/demo/stream.mp4").status == 503, "a fourth"
        # Longer than three target durations.
        end = time.monotonic() + 4
        while time.monotonic() < end:
            for stream in streams:
                assert stream.answer.read1(1 << 20)
            assert weir.stream("demo")["viewers"] == 3
        assert weir.get("/live/demo/index.m3u8").status == 503
        # A HEAD request gets no body, and takes no viewer's place.
        assert weir.get("/live/demo/stream.mp4", method="HEAD").status == 200
        assert 'weir_viewers{stream="demo",protocol="mp4"} 3' in weir.get("/metrics").text
    finally:
        for stream in streams:
            stream.close()
    weir.wait(lambda: weir.stream("demo")["viewers"] == 0, 30, "no viewer again")


def test_a_request_for_a_thumbnail_is_no_viewer_and_works_when_the_server_is_full(start):
    weir = start("--max-viewers", "1", "--no-record", *DEMO, "--segment-duration", "1s")
    weir.wait(lambda: weir.get("/live/demo/thumbnail.jpg").status == 200, 20, "a thumbnail")
    assert weir.stream("demo")["viewers"] == 0
    assert weir.get("/live/demo/index.m3u8").status == 200
    other = {"User-Agent": "another client"}
    assert weir.get("/live/demo/index.m3u8", headers=other).status == 503
    assert weir.get("/live/demo/thumbnail.jpg", headers=other).status == 200
    assert weir.stream("demo")["viewers"] == 1
