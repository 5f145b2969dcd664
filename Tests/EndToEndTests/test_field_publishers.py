"""What encoders of the field send: addresses that are divided otherwise, and rubbish beside good media."""

import pytest

from harness import amf, flv, publishers, scripts, sources
from harness.rawrtmp import DATA_AMF0, RawRTMP, Refused


@pytest.fixture(scope="module")
def weir(start_shared, canary):
    weir = start_shared("--publish-key", canary, "--no-record")
    weir.secrets.append(canary)
    weir.key = canary
    return weir


def left_out(stream: dict) -> list[str]:
    return [text for text in stream["warnings"] if "left out" in text or "never came" in text]


def connected(weir, app: str) -> tuple[RawRTMP, list]:
    client = RawRTMP(weir.rtmp)
    client.handshake()
    return client, client.connect(app)


def test_an_address_leads_to_its_stream_however_it_is_divided(weir):
    """In one field, by ffmpeg; in two of which one is empty; with Wowza's instance. What leads nowhere hears what to change."""
    paths = {"alone": "alone", "upper": "LIVE/upper", "wowza": "live/_definst_/wowza"}
    clients = [publishers.ffmpeg("half-seconds", f"{weir.rtmp}/{path}?key={weir.key}", loop=-1) for path in paths.values()]
    try:
        for app, name in (("", f"key-alone?key={weir.key}"), (f"live/server-alone?key={weir.key}", "")):
            client, answer = connected(weir, app)
            client.publish(name)
            client.close()
            assert answer[3]["capsEx"] == 14 and {"avc1", "vp09", "ac-3", ".mp3"} <= set(answer[3]["fourCcList"]), answer
        for app, name, text in (("vod", f"cam?key={weir.key}", "server rtmp://HOST/live, stream key NAME"),
                                (f"live?key={weir.key}", "", "no stream name came")):
            client, _ = connected(weir, app)
            with pytest.raises(Refused) as refusal:
                client.publish(name)
            client.close()
            assert text in refusal.value.description and weir.key not in refusal.value.description
        for name in paths:
            weir.wait_state(name, "live")
    finally:
        for client in clients:
            client.kill()


def test_what_ffmpeg_copies_from_a_transport_stream_is_not_told_to_be_left_out(weir):
    """Its first sequence header of audio is empty."""
    publisher = publishers.ffmpeg(sources.ts("steady"), f"{weir.rtmp}/live/copied?key={weir.key}", loop=-1)
    try:
        stream = weir.wait_state("copied", "live")
        assert {track["codec"] for track in stream["tracks"]} == {"H.264", "AAC"} and not left_out(stream), stream
    finally:
        publisher.kill()


def test_rubbish_beside_good_media_ends_nothing_and_warns_of_nothing(weir):
    """Empty and broken sequence headers, in front and in the middle; metadata with an end too many, and data that are no AMF."""
    tags = scripts.tags_of("h264-30")
    rubbish = [flv.Tag(flv.VIDEO, 0, b"\x17\0\0\0\0"), flv.Tag(flv.AUDIO, 0, b"\xaf\0"), flv.Tag(flv.VIDEO, 0, b"\x90hvc1")]
    broken = [*rubbish, flv.Tag(flv.VIDEO, 0, b"\x17\0\0\0\0\x01\x64\0\x1f\xff\xe1\xff\xff\x67"), flv.Tag(flv.AUDIO, 0, b"\xaf\0\xff")]
    half = len(tags) // 2
    with RawRTMP(weir.rtmp).start(f"odd?key={weir.key}") as client:
        for part, odd in ((tags[:half], rubbish), (tags[half:], broken)):
            for tag in odd:
                client.tag(flv.Tag(tag.type, part[0].milliseconds, tag.body))
            metadata = amf.encode("@setDataFrame", "onMetaData", {"width": 640, "audiocodecid": 10}) + b"\0\0\x09"
            for data in (metadata, metadata[:-20], b"{}"):
                client.send(5, DATA_AMF0, data, stream=client.stream)
            for tag in part:
                client.drain()
                client.tag(tag)
        stream = weir.wait_state("odd", "live")
        assert {track["codec"] for track in stream["tracks"]} == {"H.264", "AAC"}, stream["tracks"]
        assert not left_out(stream)
        assert stream["received"]["lostVideoFrames"] == 0, stream["received"]
        client.finish()
    weir.wait_state("odd", "ended")
