"""Streams with settings of their own in the file: each holds for the streams of its entry, and for no other."""

import json
import re

import pytest

from harness import hls, packets, publishers
from harness.rawrtmp import RawRTMP, Refused

TOKEN, KEY, OWN = "sesame-0815-4711", "key-for-everybody-0815", "key-of-the-yard-4711"
ADMIN = {"Authorization": f"Bearer {TOKEN}"}
YARD = {
    "title": "The yard", "description": "From the roof", "partDuration": "100ms", "segmentDuration": "1s", "hlsLayout": "separate",
    "window": "8s", "rewind": "1m", "reconnectWindow": "1s", "audioCodec": "opus", "ladder": ["120p@100k"], "viewers": "token",
    "publishKeys": OWN, "record": {"name": "{stream}/yard-{time}", "split": "each:2s", "tracks": "video"}}
FILE = {"admin": {"token": TOKEN}, "streams": {
    "*": {"publishKeys": KEY}, "yard-*": YARD, "brief": {"record": {"maxDuration": "2s"}, "window": "8s", "segmentDuration": "1s"},
    "far": {"publishFrom": ["127.0.0.2"], "takeover": "first"}, "silent": {"record": {"mode": "never"}}}}


@pytest.fixture(scope="module")
def weir(start_shared, tmp_path_factory):
    """yard-1 and brief have settings of their own, desk and silent hardly any. All have been live for a while."""
    path = tmp_path_factory.mktemp("configuration") / "weir.yaml"
    path.write_text(json.dumps(FILE))
    path.chmod(0o600)
    weir = start_shared("--config", path)
    weir.secrets += [TOKEN, KEY, OWN]
    weir.running = {name: publishers.ffmpeg("short", f"{weir.rtmp}/live/{name}?key={OWN if name == 'yard-1' else KEY}", loop=-1)
                    for name in ("yard-1", "desk", "brief", "silent")}
    try:
        weir.wait(lambda: "RESOLUTION=214x120" in get(weir, "/live/yard-1/index.m3u8"), 40, "the rung of yard-1")
        weir.wait(lambda: state(weir, "desk")["ageSeconds"] > 14, 40, "a while")
        yield weir
    finally:
        for one in weir.running.values():
            one.kill()


def get(weir, path: str) -> str:
    return weir.get(path, headers=ADMIN).text


def state(weir, name: str) -> dict:
    return json.loads(get(weir, f"/api/v1/streams/{name}"))


def media(weir, name: str) -> str:
    """The first media playlist."""
    index = f"{weir.web}/live/{name}/index.m3u8"
    top = hls.parse_multivariant(get(weir, index), index)
    return get(weir, top.absolute(top.variants[0].uri))


def finished(weir, name: str) -> list[dict]:
    page = json.loads(get(weir, f"/api/v1/recordings?stream={name}&sort=oldest"))
    return [one for one in page["recordings"] if one["state"] == "completed"]


def test_title_and_description(weir):
    assert (state(weir, "yard-1")["title"], state(weir, "yard-1")["description"]) == ("The yard", "From the roof")
    assert state(weir, "desk")["title"] is None and state(weir, "desk")["description"] is None


def test_parts_segments_and_window(weir):
    yard, desk = media(weir, "yard-1"), media(weir, "desk")
    for text, part, target, most in ((yard, 0.1, 1, 10), (desk, 0.2, 2, 40)):
        assert abs(float(re.search(r"PART-TARGET=([\d.]+)", text)[1]) - part) < 0.04, text[:400]
        assert int(re.search(r"TARGETDURATION:(\d+)", text)[1]) == target
        assert 3 < text.count("#EXTINF") <= most
    # Eight seconds are kept of the one, and all that there is of the other.
    assert "#EXT-X-MEDIA-SEQUENCE:1\n" in desk and int(re.search(r"MEDIA-SEQUENCE:(\d+)", yard)[1]) > 3


def test_layout_ladder_and_audio_codec(weir):
    yard, desk = get(weir, "/live/yard-1/index.m3u8"), get(weir, "/live/desk/index.m3u8")
    assert "#EXT-X-MEDIA:TYPE=AUDIO" in yard and "RESOLUTION=214x120" in yard and "opus" in yard.lower()
    assert "TYPE=AUDIO" not in desk and desk.count("#EXT-X-STREAM-INF") == 1 and "opus" not in desk.lower()


def test_rewind(weir):
    def programme(name: str) -> str:
        """The media playlist of all that viewers can go back to."""
        top = weir.get(f"/live/{name}/dvr.m3u8", headers=ADMIN).good().text
        return get(weir, f"/live/{name}/{next(line for line in top.splitlines() if line and not line.startswith('#'))}")

    yard, brief = programme("yard-1"), programme("brief")
    assert yard.count("#EXTINF") > media(weir, "yard-1").count("#EXTINF")
    # Without it viewers go back as far as the window of eight seconds reaches, which has left the beginning behind.
    assert 0 < brief.count("#EXTINF") <= 10 and int(re.search(r"MEDIA-SEQUENCE:(\d+)", brief)[1]) > 1, brief


def test_viewers_and_publishers(weir):
    assert weir.get("/live/yard-1/index.m3u8").status == 403 and weir.get("/live/desk/index.m3u8").status == 200

    def refusal(place: str, **options) -> str | None:
        try:
            with RawRTMP(weir.rtmp, **options) as client:
                client.start(place).finish()
        except Refused as refused:
            return refused.description
        return None

    assert refusal(f"yard-2?key={OWN}") is None
    assert "missing or wrong" in refusal(f"other?key={OWN}")
    assert "certain addresses" in refusal(f"far?key={KEY}") and refusal(f"far?key={KEY}", source="127.0.0.2") is None


def test_recordings(weir):
    files = weir.wait(lambda: (found := finished(weir, "yard-1")) and len(found) >= 3 and found, 20, "files of yard-1")
    assert all(one["file"].startswith("yard-20") and 1.5 < one["seconds"] < 2.6 for one in files[:3]), files[:3]
    assert set(packets.probe(weir.recordings / "yard-1" / files[0]["file"])) == {"video"}
    (brief,) = finished(weir, "brief")
    assert 1.5 < brief["seconds"] < 2.6 and state(weir, "brief")["state"] == "live"
    assert state(weir, "brief")["recording"]["state"] == "completed"
    assert not finished(weir, "desk") and state(weir, "desk")["recording"]["state"] == "running"
    assert state(weir, "silent")["recording"] is None or state(weir, "silent")["recording"]["state"] == "idle"
    assert not list(weir.recordings.glob("silent/*.mp4"))


def test_the_reconnect_window_comes_last(weir):
    for name in ("yard-1", "desk"):
        weir.running.pop(name).kill()
    weir.wait(lambda: state(weir, "yard-1")["state"] == "ended", 20, "the end of yard-1", every=0.05)
    assert state(weir, "desk")["state"] == "reconnecting"
