"""A track of a transport stream that comes late, changes its codec, and goes, beside others."""

import re
import urllib.parse

import pytest

from harness import http, inband, llhls, packets, publishers, tools

VIDEO, FIRST, SECOND, CHANGED = 0x100, 0x101, 0x102, 0x103
SECONDS = 13
#: The second audio comes after 3 s, is another codec's after 7 s, and goes after 11 s.
STAGES = [(0, {VIDEO, FIRST}), (3 / SECONDS, {VIDEO, FIRST, SECOND}), (7 / SECONDS, {VIDEO, FIRST, CHANGED}),
          (11 / SECONDS, {VIDEO, FIRST})]


def make(path, seconds: int):
    """Video, and audio in German and English. The German one is there twice, in two codecs."""
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=25", "-f", "lavfi", "-i",
              "sine=440:r=48000", "-f", "lavfi", "-i", "sine=880:r=48000", "-t", str(seconds), "-map", "0:v", "-map", "1:a",
              "-map", "2:a", "-map", "2:a", "-c:v", "libx264", "-preset", "ultrafast", "-g", "25", "-sc_threshold", "0", "-c:a",
              "aac", "-c:a:2", "libopus", "-metadata:s:a:0", "language=eng", "-metadata:s:a:1", "language=deu",
              "-metadata:s:a:2", "language=deu", "-muxrate", "1500k", path)
    return path


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    path = make(tmp_path_factory.mktemp("film") / "whole.ts", SECONDS)
    changing = path.with_name("changing.ts")
    changing.write_bytes(inband.with_changing_map(path.read_bytes(), STAGES))
    return changing


@pytest.fixture(scope="module")
def live(start_shared, film):
    weir = start_shared("--segment-duration", "1s", "--window", "60s")
    size = film.stat().st_size
    publisher = publishers.Publisher([
        "curl", "-sS", "-T", str(film), "--limit-rate", str(size // SECONDS), f"{weir.web}/live/cam/ingest"])
    weir.wait_state("cam", "live", seconds=20)
    yield weir
    publisher.kill()


@pytest.fixture
def ended(live):
    live.wait(lambda: live.stream("cam")["state"] == "ended", SECONDS + 20, "the end")
    return live


def test_the_changed_track_can_be_played(ended, tmp_path):
    """Each of its codecs, by its own init segment, without a frame lost at the change."""
    base = f"{ended.web}/live/cam/"
    text = ended.get("/live/cam/manifest.mpd").good().text
    epoch = re.search(r'initialization="([^/]*)/video/init-1.mp4"', text)[1]
    url = f"{base}{epoch}/audio-2/index.m3u8"
    page = llhls.parse(http.fetch(url).good().text, url)
    ends = []
    for codec, name in (("aac", "init-2.mp4"), ("opus", "init-3.mp4")):
        uris = [s.uri for s in page.segments if s.map and s.map.endswith(name) and not s.gap]
        path = tmp_path / f"{codec}.mp4"
        path.write_bytes(b"".join(http.fetch(urllib.parse.urljoin(url, uri)).good().body for uri in [name, *uris]))
        streams = tools.output(tools.FFPROBE, "-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", path)
        assert streams.decode().strip() == codec
        own = packets.probe(path)["audio"]
        ends.append((float(own[0].pts), float(own[-1].pts)))
    assert 0 < ends[1][0] - ends[0][1] < 0.1, ends
    # The first video and audio have one init segment all through, and no mark.
    for name in ("video", "audio"):
        text = http.fetch(f"{base}{epoch}/{name}/index.m3u8").good().text
        assert re.findall(r'#EXT-X-MAP:URI="([^"]*)"', text) == ["init-1.mp4"], text
        assert "#EXT-X-DISCONTINUITY" not in text and "#EXT-X-GAP" not in text, text


@pytest.fixture(scope="module")
def one_key_frame(tmp_path_factory):
    """One key frame in 150 s, and a second audio from 5 s on."""
    whole = tmp_path_factory.mktemp("joins") / "whole.ts"
    tools.run(tools.FFMPEG, "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=64x36:r=10", "-f", "lavfi", "-i", "sine=440:r=48000",
              "-f", "lavfi", "-i", "sine=880:r=48000", "-t", "150", "-map", "0:v", "-map", "1:a", "-map", "2:a", "-c:v", "libx264",
              "-preset", "ultrafast", "-g", "100000", "-sc_threshold", "0", "-c:a", "aac", "-b:a", "64k", "-muxrate", "500k", whole)
    stages = [(0, {VIDEO, FIRST}), (5 / 150, {VIDEO, FIRST, SECOND})]
    film = whole.with_name("film.ts")
    film.write_bytes(inband.with_changing_map(whole.read_bytes(), stages))
    return film


def test_a_track_that_joins_where_no_key_frame_is_stops_no_recording(start, one_key_frame):
    """The recording has all of the video and of the first audio."""
    weir = start("--target-duration", "2")
    publishers.Publisher(["curl", "-sS", "-T", str(one_key_frame), f"{weir.web}/live/cam/ingest"]).wait(60)
    weir.wait(lambda: [r["state"] for r in weir.recordings_of("cam")] == ["completed"], 40, "a recording")
    (recording,) = weir.recordings_of("cam")
    counts = tools.output(tools.FFPROBE, "-v", "error", "-count_packets", "-show_entries", "stream=codec_type,nb_read_packets", "-of",
                          "csv=p=0", weir.recordings / "cam" / recording["file"]).decode().split()
    found = dict(line.strip(",").split(",") for line in counts)
    assert int(found["video"]) == 1500 and int(found["audio"]) >= 150 * 48000 // 1024 - 2 and len(counts) == 2, counts
    assert not recording["gaps"], recording
    assert "the recording goes on without them" in weir.text()
