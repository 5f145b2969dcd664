"""Clocks that wrap, jump and break, tracks that come late or change, publishers that drop and return: all at once into one
server, by scripted RTMP clients."""

import concurrent.futures
import threading

import pytest

from harness import nothing_wrong, boxes, hls, packets, publishers, scripts, sources, tools
from harness.outcome import Outcome

SCRIPTS = {
    "wrap-24": scripts.starting_at(16_770_000),
    "wrap-24-bare": scripts.starting_at(16_770_000, repeat_extended=False),
    "wrap-31": scripts.starting_at((1 << 31) - 4000, bits=31),
    "wrap-32": scripts.starting_at((1 << 32) - 4000),
    "extended": scripts.starting_at(3_000_000_000),
    "headers": scripts.headers_before_every_key_frame,
    "no-audio": scripts.audio_never_comes,
    "late-audio": scripts.audio_comes_late,
    "audio-ahead": scripts.audio_arrives_ahead,
    "aggregates": scripts.in_aggregates,
    "oddities": scripts.with_oddities,
    "resize": scripts.parameters_change("small"),
    "resample": scripts.parameters_change("audio-441"),
    "relay": scripts.parameters_change("small-mono"),
    "to-mono": scripts.audio_changes_between_key_frames,
    "grows": scripts.grows_at_once,
    "jump-ahead": scripts.clock_jumps(36_000_000),
    "jump-back": scripts.clock_jumps(-3_600_000),
    "line-drops": scripts.line_drops(1.5, MOMENTS := {}, lambda: MISSED.wait(20)),
    "returns": scripts.ends_and_returns,
}
#: Set when the API has told of the drop.
MISSED = threading.Event()
#: One publication, one timeline: every output is the film, unaffected by its peculiarity.
SMOOTH = ["wrap-24", "wrap-24-bare", "wrap-31", "wrap-32", "extended", "headers", "audio-ahead", "aggregates", "oddities"]
#: Two successive films with a splice between them.
SPLICED = {"resize": "small", "resample": "audio-441", "relay": "small-mono", "jump-ahead": "short", "jump-back": "short",
           "line-drops": "short"}
#: How far the tracks of a segment may begin or end apart, in seconds: audio is cut a little before the video.
APART = 0.35


@pytest.fixture(scope="module")
def timelines(start_shared, tmp_path_factory):
    folder = tmp_path_factory.mktemp("timelines")
    for film in ("h264-30", "h264-25", "short", "small", "small-mono", "audio-441"):
        sources.flv(film)
    weir = start_shared("--target-duration", "2")
    outcomes = {name: Outcome(weir, name, folder) for name in SCRIPTS}
    notes: dict[str, list] = {"line-drops": []}
    published: set[str] = set()
    with concurrent.futures.ThreadPoolExecutor(len(SCRIPTS)) as pool:
        def run(name: str) -> None:
            SCRIPTS[name](weir.rtmp, name)
            published.add(name)
            if name == "no-audio":
                notes[name] = weir.stream(name)["warnings"]
            # Other tracks go into another file.
            outcomes[name].collect(recordings=2 if name in ("returns", "late-audio") else 1, seconds=30)

        jobs = {name: pool.submit(run, name) for name in SCRIPTS}
        weir.wait(lambda: weir.get("/live/line-drops/index.m3u8").status == 200, 10, "line-drops has a playlist")
        viewer = publishers.Publisher([
            tools.FFMPEG, "-v", "error", "-live_start_index", "0", "-i", f"{weir.web}/live/line-drops/index.m3u8",
            "-map", "0", "-c", "copy", "-f", "framemd5", str(folder / "viewer.md5")])
        while "line-drops" not in published and not jobs["line-drops"].done():
            state = weir.stream("line-drops")["state"]
            if notes["line-drops"][-1:] != [state]:
                notes["line-drops"].append(state)
            if state == "reconnecting":
                MISSED.set()
            concurrent.futures.wait([jobs["line-drops"]], 0.1)
        errors = {name: job.exception(60) for name, job in jobs.items()}
    # Requested now: an ended stream stays for a minute, and the tests may take longer.
    first = outcomes["returns"].hls.states[0][1]
    notes["returns"] = [weir.get(url).status for url in (first.url, first.absolute(first.segments[0].uri))]
    nothing_wrong([f"{name}: {error!r}" for name, error in errors.items() if error])
    code, log = viewer.outcome(20)
    notes["viewer"] = [code, log, (folder / "viewer.md5").read_text()]
    return outcomes, notes, weir


def hls_problems(timelines, outcome) -> list[str]:
    """Without steps of dates that the log tells of: a machine that is busy holds up first media."""
    return hls.unexplained(outcome.hls.problems, timelines[2].text(), outcome.name)


def times_set(timelines, outcome) -> int:
    return len(hls.steps_told(timelines[2].text(), outcome.name))


def down() -> tuple[float, float]:
    """Seconds without media of line-drops: since its last tag, and since its 4 s were over. A machine that is busy holds up tags."""
    return MOMENTS["return"] - MOMENTS["last"], MOMENTS["return"] - MOMENTS["first"] - 4


@pytest.fixture(scope="module")
def film():
    return packets.probe(sources.source("h264-30"))


@pytest.mark.parametrize("name", SMOOTH)
def test_an_odd_clock_or_an_odd_sender_leaves_no_trace_in_hls(timelines, film, name):
    outcome = timelines[0][name]
    nothing_wrong(hls_problems(timelines, outcome))
    nothing_wrong(outcome.check_hls_boxes())
    assert not [s for s in outcome.media().segments if s.discontinuity]
    nothing_wrong(packets.compare(film, outcome.walked_hls()))


@pytest.mark.parametrize("name", SMOOTH)
def test_nor_in_dash_stream_mp4_and_the_recording(timelines, film, name):
    outcome = timelines[0][name]
    nothing_wrong(outcome.dash.problems)
    nothing_wrong(outcome.check_dash_boxes())
    assert len({r.period for r in outcome.dash.last.representations}) <= 1 + times_set(timelines, outcome)
    nothing_wrong(packets.compare(film, outcome.walked_dash()))
    assert outcome.progressive_error == ""
    nothing_wrong(packets.compare(film, packets.probe(outcome.progressive), whole=False))
    assert len(outcome.recordings) == 1, outcome.catalogue
    nothing_wrong(packets.compare(film, packets.probe(outcome.recordings[0])))


def test_announced_audio_that_never_comes_delays_the_start_by_a_bounded_time_and_is_told(timelines, film):
    outcome = timelines[0]["no-audio"]
    nothing_wrong(hls_problems(timelines, outcome))
    # All frames, from the first, so nothing was lost while weir waited for the audio.
    nothing_wrong(packets.compare({"video": film["video"]}, outcome.walked_hls()))
    growing = [state for _, state in outcome.hls.states if not state.ended]
    assert len(growing) >= 2, "the playlist grew while the film was being published"
    timelines[2].wait_log(r"no-audio: audio never came")
    # The ended stream stays for a minute, and so do its warnings.
    assert [w for w in timelines[1]["no-audio"] if "audio never came" in w], timelines[1]["no-audio"]


def apart(outcome) -> list[str]:
    """Segments of HLS whose tracks do not begin and end together, or that lack one, and sets of DASH that begin before their
    Period."""
    found, playlist = [], outcome.media()
    for segment in playlist.present:
        movie = boxes.read_movie(outcome.bytes_of(playlist.absolute(segment.map)))
        walked = packets.walked(movie, [boxes.read_segment(outcome.bytes_of(playlist.absolute(segment.uri)), movie)])
        if not all(walked.values()):
            found.append(f"{segment.uri}: {({kind: len(packets) for kind, packets in walked.items()})}")
            continue
        for what, times in (("begin", [min(p.pts for p in kind) for kind in walked.values()]),
                            ("end", [max(p.pts for p in kind) for kind in walked.values()])):
            if max(times) - min(times) > APART:
                found.append(f"{segment.uri}: tracks {what} at {[round(float(time), 3) for time in times]}")
    for r in outcome.dash.last.representations:
        early = (r.offset - r.entries[0].time) / r.timescale
        if early > APART:
            found.append(f"DASH {r.id}: {early:.3f} s before its Period")
    return found


def test_audio_that_comes_late_is_added_with_a_new_map_at_a_key_frame(timelines, film):
    """It is all there from that key frame on, and no segment has audio from before its beginning."""
    outcome = timelines[0]["late-audio"]
    nothing_wrong(hls_problems(timelines, outcome))
    nothing_wrong(outcome.check_hls_boxes())
    segments = outcome.media().segments
    assert len([s for s in segments if s.discontinuity]) == 1
    assert len({s.map for s in segments}) == 2
    movie = boxes.read_movie(outcome.bytes_of(outcome.media().absolute(segments[-1].map)))
    assert sorted(track.kind for track in movie.tracks.values()) == ["audio", "video"]
    assert outcome.digests("video") == [p.digest for p in film["video"]]
    begins = next(p.pts for p in film["video"] if p.is_key and p.pts >= 5)
    audio, late = outcome.digests("audio"), [p.digest for p in film["audio"] if p.pts >= begins]
    assert len(late) >= 1.9 * 48000 / 1024
    # The frame in which the key frame comes is there, too.
    assert audio[-len(late):] == late and len(audio) <= len(late) + 2
    nothing_wrong(apart(outcome))


def test_where_picture_and_audio_change_together_no_segment_lacks_one(timelines):
    nothing_wrong(apart(timelines[0]["relay"]))


def test_audio_that_changes_between_key_frames_is_silent_up_to_the_next_one(timelines, film):
    outcome = timelines[0]["to-mono"]
    nothing_wrong(hls_problems(timelines, outcome))
    nothing_wrong(outcome.check_hls_boxes())
    playlist = outcome.media()
    assert len([s for s in playlist.segments if s.discontinuity]) == 1 and len({s.map for s in playlist.segments}) == 2
    change = playlist.text.partition("#EXT-X-DISCONTINUITY")[2]
    assert "INDEPENDENT=YES" in next(line for line in change.splitlines() if line.startswith("#EXT-X-PART:")), "the change is at a key frame"
    assert outcome.digests("video") == [p.digest for p in film["video"]]
    stereo, mono = [p.digest for p in film["audio"]], packets.probe(sources.source("h264-25"))["audio"]
    late = [p.digest for p in mono if p.pts >= 4]
    audio = outcome.digests("audio")
    # What begins before the first picture may be missing.
    begins = stereo.index(audio[0])
    assert begins <= 2 and audio[:130] == stereo[begins:begins + 130] and audio[-len(late):] == late
    silent = [digest for digest in audio if digest not in {*stereo, *(p.digest for p in mono)}]
    assert len(set(silent)) == 1 and 0.8 < len(silent) * 1024 / 48000 < 1.3, len(silent)
    nothing_wrong(apart(outcome))
    errors, frames = outcome.decode_hls_by_map()
    assert errors == "" and frames["video"] == len(film["video"])


def test_audio_that_changes_between_key_frames_is_a_period_of_all_kinds(timelines):
    outcome = timelines[0]["to-mono"]
    nothing_wrong(outcome.dash.problems)
    nothing_wrong(outcome.check_dash_boxes())
    kinds: dict[str, set[str]] = {}
    for r in outcome.dash.last.representations:
        kinds.setdefault(r.period, set()).add(r.kind)
    assert len(kinds) >= 2 and set(map(frozenset, kinds.values())) == {frozenset({"video", "audio"})}, kinds
    for path in outcome.recordings:
        errors, _ = packets.decode(path)
        assert errors == ""


@pytest.mark.parametrize("name", SPLICED)
def test_a_splice_is_one_discontinuity_in_the_same_epoch_and_loses_nothing(timelines, name):
    outcome = timelines[0][name]
    nothing_wrong(hls_problems(timelines, outcome))
    nothing_wrong(outcome.check_hls_boxes())
    playlist = outcome.media()
    assert len({state.url for _, state in outcome.hls.states}) == 1, "the epoch stays"
    assert [s.sequence for s in playlist.segments] == list(range(1, len(playlist.segments) + 1))
    assert len([s for s in playlist.segments if s.discontinuity]) == 1
    assert len({s.map for s in playlist.segments}) == (2 if name in ("resize", "resample", "relay") else 1)
    a, b = scripts.frames("short"), scripts.frames(SPLICED[name])
    assert outcome.digests("video") == a["video"] + b["video"]
    audio = outcome.digests("audio")
    assert len(a["audio"]) + len(b["audio"]) - 12 <= len(audio) <= len(a["audio"]) + len(b["audio"])
    errors, frames = outcome.decode_hls_by_map()
    assert errors == ""
    assert frames["video"] == len(a["video"] + b["video"])


@pytest.mark.parametrize("name", SPLICED)
def test_a_splice_is_a_new_period_in_dash(timelines, name):
    outcome = timelines[0][name]
    nothing_wrong(outcome.dash.problems)
    nothing_wrong(outcome.check_dash_boxes())
    periods = list(dict.fromkeys((r.period, r.period_start) for r in outcome.dash.last.representations))
    assert 2 <= len(periods) <= 2 + times_set(timelines, outcome)
    # That of the splice is the last: clocks are set while the first media come.
    assert periods == sorted(periods, key=lambda period: period[1])
    least, most = down() if name == "line-drops" else (0, 0)
    assert 3.3 + least < float(periods[-1][1] - periods[0][1]) < 4.7 + most


@pytest.mark.parametrize("name", SPLICED)
def test_the_recordings_of_a_splice_hold_every_frame(timelines, name):
    outcome = timelines[0][name]
    a, b = scripts.frames("short"), scripts.frames(SPLICED[name])
    found = []
    for path in outcome.recordings:
        errors, _ = packets.decode(path)
        assert errors == ""
        found += [p.digest for p in packets.probe(path)["video"]]
    assert found == a["video"] + b["video"], outcome.catalogue


def test_a_picture_that_grows_within_the_first_second_is_recorded_from_its_first_frame(timelines):
    outcome = timelines[0]["grows"]
    nothing_wrong(hls_problems(timelines, outcome))
    every = scripts.frames("small")["video"][:15] + scripts.frames("short")["video"]
    assert outcome.digests("video") == every
    assert len(outcome.recordings) == 1, outcome.catalogue
    errors, _ = packets.decode(outcome.recordings[0])
    assert errors == ""
    assert [p.digest for p in packets.probe(outcome.recordings[0])["video"]] == every


def test_a_drop_is_told_as_reconnecting_and_viewers_read_on_through_it(timelines):
    outcomes, notes, _ = timelines
    states = notes["line-drops"]
    assert states[:3] == ["live", "reconnecting", "live"], states
    code, log, frames = notes["viewer"]
    assert code == 0 and log == ""
    video = [line for line in frames.splitlines() if line.startswith("0,")]
    assert len(video) == 2 * len(scripts.frames("short")["video"])


def test_dates_tell_the_real_time_of_an_outage(timelines):
    segments = timelines[0]["line-drops"].media().segments
    splice = next(index for index, segment in enumerate(segments) if segment.discontinuity)
    before, after = segments[splice - 1], segments[splice]
    jump = (after.date - before.date).total_seconds() - float(before.duration)
    assert abs(jump) < 0.01, "dates follow from lengths"
    gap = float(sum(segment.duration for segment in segments if segment.gap))
    least, most = down()
    assert least - 0.3 < gap < most + 1, f"the line was down for {least:.2f} to {most:.2f} s; the playlist says {gap:.2f} s"
    assert before.gap, "what was not published is a gap before what came then"


def test_a_publisher_that_returns_after_the_end_starts_a_new_epoch(timelines):
    outcome = timelines[0]["returns"]
    urls = list(dict.fromkeys(state.url for _, state in outcome.hls.states))
    assert len(urls) == 2
    for url in urls:
        last = [state for _, state in outcome.hls.states if state.url == url][-1]
        assert last.ended or url == urls[0]
        assert last.segments[0].sequence == 1
    nothing_wrong(hls_problems(timelines, outcome))
    assert len(outcome.recordings) == 2
    for path in outcome.recordings:
        assert [p.digest for p in packets.probe(path)["video"]] == scripts.frames("short")["video"]


def test_the_ended_epoch_is_still_there_a_while(timelines):
    assert timelines[1]["returns"] == [200, 200]
