"""Tests of the judges: they accept correct output of ffmpeg, and refuse the same output with one error.

Without these tests, a test without findings could mean that nothing was checked.
"""

import dataclasses
import os
import signal
import struct
import time
from fractions import Fraction

import pytest

from harness import amf, box_rules, boxes, dash, flv, hls, llhls, metronome, packets, recordings, room, sources, tools

pytestmark = pytest.mark.rules


@pytest.fixture(scope="module")
def fragmented(tmp_path_factory):
    """A film as one fragmented file by ffmpeg: its init part and its media part."""
    path = tmp_path_factory.mktemp("judges") / "fragmented.mp4"
    done = tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("h264-30"), "-c", "copy", "-movflags",
                     "+frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets", path)
    assert done.returncode == 0, done.stderr
    data = path.read_bytes()
    first = next(box.start for box in boxes.read_boxes(data) if box.type == b"moof")
    end = next(box.start for box in boxes.read_boxes(data) if box.type == b"mfra")
    return path, data[:first], data[first:end]


def shown(*periods: tuple[float, float], sap: str | None = "1") -> dash.Manifest:
    """Periods with one video of one segment: where they begin, and for how long the media last, in seconds."""
    attributes = {"mimeType": "video/mp4", "width": "320", "height": "180", "frameRate": "30", "sar": "1:1",
                  "segmentAlignment": "true"} | ({"startWithSAP": sap} if sap else {})
    return dash.Manifest(
        "", "manifest.mpd", "static", {"profiles": "", "minBufferTime": "PT2S", "mediaPresentationDuration": "PT9S"}, None, None,
        [dash.Representation(str(number), Fraction(start), "video", "video", "avc1", 1, 1000, 0, "init",
                             [dash.Entry(0, round(length * 1000), f"{number}")], attributes, {})
         for number, (start, length) in enumerate(periods)], [])


def test_periods_that_overlap_are_found():
    assert dash.check(shown((0, 4), (4, 4), (9, 4))) == []
    assert dash.overlaps(shown((0, 4), (3.75, 4))) == [0.25]
    [problem] = dash.check(shown((0, 6), (2, 4)))
    assert problem.startswith("D21"), problem


def test_a_set_promises_key_frames_just_where_all_of_its_segments_begin_with_one():
    silent = shown((0, 4), sap=None)
    assert dash.check(silent, lambda *_: False) == []
    for problems in (dash.check(silent), dash.check(silent, lambda *_: True), dash.check(shown((0, 4), sap="2"))):
        assert len(problems) == 1 and problems[0].startswith("D11"), problems


def problems_of(init: bytes, media: bytes) -> list[str]:
    movie = boxes.read_movie(init)
    state = box_rules.Continuity()
    found = []
    for fragment in boxes.read_segment(media, movie).fragments:
        found += box_rules.check_fragment(media, fragment, movie, state)
    return found


def test_the_box_walker_reads_the_samples_that_ffprobe_reads(fragmented):
    path, init, media = fragmented
    movie = boxes.read_movie(init)
    walked = {"video": [], "audio": []}
    for fragment in boxes.read_segment(media, movie).fragments:
        for run in fragment.runs:
            walked[movie.tracks[run.track].kind] += run.samples
    probed = packets.probe(path)
    for kind, samples in walked.items():
        assert [s.digest for s in samples] == [p.digest.removeprefix("MD5:") for p in probed[kind]]
        assert [s.is_sync for s in samples] == [p.is_key for p in probed[kind]]


def test_ffmpegs_fragments_obey_the_box_rules(fragmented):
    _, init, media = fragmented
    assert problems_of(init, media) == []


def patched(data: bytes, marker: bytes, offset: int, value: bytes, occurrence: int = 1) -> bytes:
    at = -1
    for _ in range(occurrence):
        at = data.index(marker, at + 1)
    return data[: at + offset] + value + data[at + offset + len(value) :]


@pytest.mark.parametrize(
    "rule, marker, offset, value, occurrence",
    [
        ("A11", b"tfdt", 8, struct.pack(">Q", 12345), 3),
        ("A10", b"mfhd", 8, struct.pack(">I", 1), 2),
        ("A08", b"tfhd", 4, struct.pack(">I", 0x38), 1),
        ("A09", b"trun", 12, struct.pack(">i", 2000), 1),
        ("A12", b"trun", 4, b"\0", 1),
    ],
)
def test_the_box_rules_refuse_a_broken_fragment(fragmented, rule, marker, offset, value, occurrence):
    _, init, media = fragmented
    try:
        found = problems_of(init, patched(media, marker, offset, value, occurrence))
    except boxes.BoxError as error:
        found = [f"{rule} {error}"]
    assert any(problem.startswith(rule) for problem in found), found


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """The film, fragmented with its edit lists. (ffmpeg's empty_moov drops them, and with them the A/V relation.)"""
    path = tmp_path_factory.mktemp("copy") / "copy.mp4"
    done = tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("h264-30"), "-c", "copy", "-movflags",
                     "+frag_keyframe+delay_moov+default_base_moof", path)
    assert done.returncode == 0, done.stderr
    return path


def test_an_offset_between_audio_and_video_is_found(fragmented):
    path, _, _ = fragmented
    found = packets.compare(packets.probe(sources.source("h264-30")), packets.probe(path))
    assert len(found) == 1 and "off the video" in found[0]


def test_an_exact_copy_is_found_equal_and_a_millisecond_copy_is_not(copy):
    path = copy
    published = packets.probe(sources.source("h264-30"))
    assert packets.compare(published, packets.probe(path)) == []
    rounded = packets.compare(published, packets.probe(sources.flv("h264-30")))
    assert any("plus a constant" in problem for problem in rounded), rounded
    assert packets.compare(published, packets.probe(sources.flv("h264-30")), variable=True) != [], \
        "audio on a millisecond grid is not sample exact, whatever the video's rate"


def test_a_lost_a_doubled_and_a_late_packet_are_found(copy):
    path = copy
    published, served = packets.probe(sources.source("h264-30")), packets.probe(path)
    lost = {**served, "video": served["video"][:100] + served["video"][101:]}
    assert packets.compare(published, lost)
    assert packets.compare(published, {**served, "video": served["video"][:-1]})
    assert packets.compare(published, {**served, "audio": served["audio"] + served["audio"][-1:]})
    late = [dataclasses.replace(p, pts=p.pts + Fraction(2, 100), dts=p.dts + Fraction(2, 100)) for p in served["audio"]]
    assert any("off the video" in problem for problem in packets.compare(published, {**served, "audio": late}))
    assert packets.compare(published, {"video": served["video"]})


def test_the_recording_rules_accept_a_faststart_file_and_refuse_a_moov_at_the_end(tmp_path):
    good, late = tmp_path / "good.mp4", tmp_path / "late.mp4"
    for path, options in ((good, ["-movflags", "+faststart"]), (late, [])):
        assert tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("h264-25"), "-c", "copy", *options,
                         path).returncode == 0
    assert recordings.check_recording(good) == []
    assert any(problem.startswith("E01") for problem in recordings.check_recording(late))


def test_a_recording_with_a_wrong_sync_table_is_refused(tmp_path):
    path = tmp_path / "film.mp4"
    assert tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("video-only"), "-c", "copy", "-movflags",
                     "+faststart", path).returncode == 0
    path.write_bytes(patched(path.read_bytes(), b"stss", 12, struct.pack(">I", 7)))
    assert any("E02" in problem for problem in recordings.check_recording(path))


GOOD = """#EXTM3U
#EXT-X-VERSION:6
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-MAP:URI="init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:10.000Z
#EXTINF:2.00000,
7.m4s
#EXTINF:2.00000,
8.m4s
"""


@pytest.mark.parametrize(
    "rule, old, new",
    [
        ("B02", "#EXTINF:2.00000,\n8", "#EXTINF:2.60000,\n8"),
        ("B04", "VERSION:6", "VERSION:3"),
        ("B05", "2.00000,\n8", "2,\n8"),
        ("B06", "SEQUENCE:7", "SEQUENCE:0"),
        ("B11", "#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:10.000Z\n", ""),
        ("B11", "7.m4s\n", "7.m4s\n#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:13.000Z\n"),
        ("B12", '#EXT-X-MAP:URI="init-1.mp4"\n', ""),
        ("B14", "#EXT-X-MEDIA-SEQ", "#EXT-X-PLAYLIST-TYPE:EVENT\n#EXT-X-MEDIA-SEQ"),
    ],
)
def test_the_playlist_rules_refuse_one_wrong_line(rule, old, new):
    assert hls.check_media(hls.parse_media(GOOD, "http://x/index.m3u8")) == []
    assert old in GOOD
    found = hls.check_media(hls.parse_media(GOOD.replace(old, new), "http://x/index.m3u8"))
    assert [problem for problem in found if problem.startswith(rule)], found


LIVE = """#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:1
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=6.0,PART-HOLD-BACK=1.5,HOLD-BACK=3.0
#EXT-X-PART-INF:PART-TARGET=0.5
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-MAP:URI="init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:10.000Z
#EXT-X-PART:DURATION=0.5,URI="7.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.5,URI="7.1.m4s"
#EXTINF:1.00000,
7.m4s
#EXT-X-PART:DURATION=0.5,URI="8.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.3,URI="8.1.m4s"
#EXTINF:0.80000,
8.m4s
#EXT-X-PART:DURATION=0.5,URI="9.0.m4s",INDEPENDENT=YES
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="9.1.m4s"
"""
HINT = '#EXT-X-PRELOAD-HINT:TYPE=PART,URI="9.1.m4s"\n'


@pytest.mark.parametrize(
    "rule, old, new",
    [
        ("C01", "CAN-BLOCK-RELOAD=YES,", ""),
        ("C01", "PART-HOLD-BACK=1.5", "PART-HOLD-BACK=1.2"),
        ("C01", ",HOLD-BACK=3.0", ",HOLD-BACK=2.5"),
        ("C02", "CAN-SKIP-UNTIL=6.0", "CAN-SKIP-UNTIL=5.0"),
        ("C03", "#EXT-X-PART-INF:PART-TARGET=0.5\n", ""),
        ("C03", 'DURATION=0.5,URI="7.1', 'DURATION=0.6,URI="7.1'),
        ("C03", 'DURATION=0.5,URI="7.0', 'DURATION=0.4,URI="7.0'),
        ("C04", "#EXTINF:0.80000", "#EXTINF:0.90000"),
        ("C05", '"8.0.m4s",INDEPENDENT=YES', '"8.0.m4s"'),
        ("C14", HINT, ""),
        ("C14", "TYPE=PART", "TYPE=MAP"),
        ("C14", HINT, HINT.replace("9.1", "9.3")),
        ("C14", HINT, HINT.replace("9.1", "9.0")),
        ("C14", '#EXT-X-PART:DURATION=0.5,URI="9.0', HINT + '#EXT-X-PART:DURATION=0.5,URI="9.0'),
        ("C19", "#EXT-X-VERSION:9", "#EXT-X-VERSION:6\n#EXT-X-SKIP:SKIPPED-SEGMENTS=3"),
        ("C20", "#EXT-X-PROGRAM-DATE-TIME:2026-11-21T07:24:10.000Z\n", ""),
    ],
)
def test_the_rules_of_low_latency_refuse_one_wrong_line(rule, old, new):
    assert llhls.judge(llhls.parse(LIVE, "http://x/index.m3u8")) == []
    assert old in LIVE
    text = LIVE.replace(old, new)
    if HINT in new and HINT not in old:
        text = text.removesuffix(HINT)
    found = llhls.judge(llhls.parse(text, "http://x/index.m3u8"))
    assert [problem for problem in found if problem.startswith(rule)], found


def test_ffmpegs_own_manifest_is_read_to_its_segments(tmp_path):
    manifest = tmp_path / "out.mpd"
    done = tools.run(tools.FFMPEG, "-v", "error", "-i", sources.source("h264-30"), "-c", "copy", "-f", "dash",
                     "-use_timeline", "1", "-use_template", "1", manifest)
    assert done.returncode == 0, done.stderr
    read = dash.parse(manifest.read_text(), manifest.as_uri())
    assert sorted(r.kind for r in read.representations) == ["audio", "video"]
    for r in read.representations:
        movie = boxes.read_movie((tmp_path / r.init.rsplit("/", 1)[1]).read_bytes())
        (track,) = movie.tracks
        for entry in r.entries:
            segment = boxes.read_segment((tmp_path / entry.url.rsplit("/", 1)[1]).read_bytes(), movie)
            assert segment.fragments[0].runs[0].tfdt == entry.time or r.kind == "audio"


def test_amf_values_survive_the_way_there_and_back():
    values = ["connect", 1.0, {"app": "live", "flag": True, "list": ["a", None]}, "x" * 70000]
    assert amf.decode(amf.encode(*values)) == values


def test_the_flv_reader_finds_headers_and_key_frames():
    tags = flv.read(sources.flv("h264-30"))
    assert sum(tag.is_header for tag in tags) == 2
    assert sum(tag.is_key for tag in tags) == 4
    assert len(flv.only(tags, flv.VIDEO)) == 240 + 1
    enhanced = flv.read(sources.flv("hevc"))
    assert sum(tag.is_header and tag.type == flv.VIDEO for tag in enhanced) == 1


def test_what_begins_waits_for_room_on_the_processors(tmp_path, monkeypatch):
    """Where the machine stays busy, it begins all the same. Without a metronome there is room."""
    monkeypatch.setattr(room, "PATIENCE", 0.3)
    monkeypatch.delenv("WEIR_BEATS", raising=False)
    assert room.wait() == 0
    monkeypatch.setenv("WEIR_BEATS", str(tmp_path / "beats"))
    assert room.wait() == 0
    queue = metronome.queue_file(tmp_path / "beats")
    queue.write_text("%8.2f" % room.MOST)
    assert room.wait() == 0
    queue.write_text("%8.2f" % (room.MOST + 0.1))
    assert room.wait() >= 0.3
    assert 0 <= metronome.waiting() < 1000
    readings = iter([room.MOST + 1] * 3 + [1])
    monkeypatch.setattr(room, "PATIENCE", 60)
    monkeypatch.setattr(room, "_waiting", lambda _: next(readings))
    assert 0 < room.wait() < 60 and next(readings, None) is None


def test_the_metronome_tells_when_the_machine_stood_still(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("a higher priority needs root")
    beside = metronome.Metronome(tmp_path / "beats")
    try:
        if not (tmp_path / "beats").exists():
            pytest.skip("this root may not take a higher priority")
        before = time.monotonic()
        beside.process.send_signal(signal.SIGSTOP)
        began = time.monotonic()
        time.sleep(0.8)
        stopped = time.monotonic() - began
        beside.process.send_signal(signal.SIGCONT)
        end = time.monotonic() + 10
        while (kept := beside.between(before, time.monotonic())).longest < stopped - 0.1 and time.monotonic() < end:
            time.sleep(0.05)
        longest = time.monotonic() - before
    finally:
        beside.stop()
    assert stopped - 0.1 <= kept.longest <= kept.still <= longest, (stopped, kept, longest)
    assert kept.longest >= metronome.MOST_STILL
    assert metronome.judged([]) == metronome.Kept(0, 0, 1)
    assert metronome.judged([("work", 1.0, metronome.USUAL_SECONDS * 4)]).speed == 0.25
