"""All kinds of publishers at once into one server with a publish key; every output is compared with its source."""

import concurrent.futures
import contextlib
import re
import time
from fractions import Fraction

import pytest

from harness import nothing_wrong, boxes, hls, packets, publishers, recordings, sources, tokens, tools
from harness.outcome import Outcome

#: Stream name → film and publisher.
STREAMS = {
    "h264-30": ("h264-30", "ffmpeg"),
    "h264-2997": ("h264-2997", "ffmpeg"),
    "h264-25": ("h264-25", "ffmpeg"),
    "h264-23976": ("h264-23976", "ffmpeg"),
    "h264-60": ("h264-60", "ffmpeg"),
    "hevc": ("hevc", "ffmpeg"),
    "h264-open": ("h264-open", "ffmpeg"),
    "hevc-open": ("hevc-open", "ffmpeg"),
    "av1-opus": ("av1-opus", "ffmpeg"),
    "vp9-opus": ("vp9-opus", "ffmpeg"),
    "h264-opus": ("h264-opus", "ffmpeg"),
    "audio-only": ("audio-only", "ffmpeg"),
    "video-only": ("video-only", "ffmpeg"),
    "long-gop": ("long-gop", "ffmpeg"),
    "vfr": ("vfr", "ffmpeg"),
    "gop-1920": ("gop-1920", "ffmpeg"),
    "gop-1500": ("gop-1500", "ffmpeg"),
    "h264-new-ffmpeg": ("h264-30", "new"),
    "h264-gstreamer": ("h264-30", "gstreamer"),
}
CODECS = {
    "hevc-open": r"hvc1\.1\.6\.L\d+\.[0-9A-F.]+,mp4a\.40\.2",
    "hevc": r"hvc1\.1\.6\.L\d+\.[0-9A-F.]+,mp4a\.40\.2",
    "av1-opus": r"av01\.0\.\d\d[MH]\.08(\.\S+)?,opus",
    "vp9-opus": r"vp09\.00\.\d\d\.08(\.\S+)?,opus",
    "h264-opus": r"avc1\.64[0-9A-Fa-f]{4},opus",
    "audio-only": r"mp4a\.40\.2",
    "video-only": r"avc1\.64[0-9A-Fa-f]{4}",
}
H264 = r"avc1\.64[0-9A-Fa-f]{4},mp4a\.40\.2"


@pytest.fixture(scope="module")
def matrix(start_shared, canary, tmp_path_factory):
    """Publishes and follows everything, and returns the outcomes by stream name.

    The publishers begin one after another: processors that are busy with their starts would hold up what each sends first."""
    folder = tmp_path_factory.mktemp("matrix")
    with tokens.token("encoder"):
        for film, _ in STREAMS.values():
            sources.source(film)
    weir = start_shared("--publish-key", canary)
    weir.secrets.append(canary)
    outcomes, running = {}, {}
    with contextlib.ExitStack() as stack:
        # The longest first. The live viewers' stream is the last to end.
        for name, (film, sender) in sorted(STREAMS.items(), key=lambda one: (one[0] == "h264-30", -sources.RECIPES[one[1][0]].seconds)):
            # It asks for the stream before that is there.
            outcomes[name] = Outcome(weir, name, folder)
            url = f"{weir.rtmp}/live/{name}?key={canary}"
            if sender == "gstreamer":
                publisher = publishers.gstreamer(film, url)
            else:
                publisher = publishers.ffmpeg(film, url, version="new" if sender == "new" else None)
            stack.callback(publisher.kill)
            running[name] = publisher
            weir.wait(lambda: weir.get(f"/live/{name}/status.json").status == 200, 30, f"{name} is published")
        viewers = {kind: stack.enter_context(live_viewer(weir, folder, path)) for kind, path in
                   (("hls", "index.m3u8"), ("dash", "manifest.mpd"))}
        with concurrent.futures.ThreadPoolExecutor(len(running)) as pool:
            # Each is collected as soon as its publisher ends, because an ended stream stays for only a minute.
            list(pool.map(lambda name: running[name].wait(60) and outcomes[name].collect(), running))
        # ffmpeg's DASH demuxer does not notice that a manifest has become static.
        for kind, viewer in viewers.items():
            viewer.finish(ends_by_itself=kind == "hls")
    return outcomes, viewers, weir


class Viewer:
    """An ffmpeg that reads the live stream and records the hash of each packet."""

    def __init__(self, url: str, path):
        self.path = path
        self.process = publishers.Publisher([
            tools.FFMPEG, "-nostdin", "-v", "error", "-i", url, "-map", "0:v", "-c", "copy",
            "-flush_packets", "1", "-f", "framemd5", str(path)])
        self.log = ""

    def finish(self, *, ends_by_itself: bool) -> None:
        if not ends_by_itself:
            for _ in range(2):  # the first asks, the second interrupts a waiting read
                self.process.interrupt()
                time.sleep(0.5)
        code, self.log = self.process.outcome(20)
        if code and (ends_by_itself or code != 255):
            self.log += f"\nexit {code}"

    def digests(self) -> list[str]:
        lines = [line for line in self.path.read_text().splitlines() if line[:1] == "0"]
        return ["MD5:" + line.split(",")[5].strip() for line in lines]


@contextlib.contextmanager
def live_viewer(weir, folder, path):
    # ffmpeg begins with a manifest's oldest segment, and fails if it has to wait at the live edge.
    listed = re.compile(r"<S t=" if path.endswith(".mpd") else "#EXT-X-STREAM-INF")
    weir.wait(lambda: len(listed.findall(weir.get(f"/live/h264-30/{path}").text)) >= (6 if path.endswith(".mpd") else 1), 20,
              f"{path} of h264-30")
    viewer = Viewer(f"{weir.web}/live/h264-30/{path}", folder / f"viewer-{path}.md5")
    try:
        yield viewer
    finally:
        viewer.process.kill()


@pytest.fixture(params=STREAMS)
def outcome(request, matrix):
    return matrix[0][request.param]


def film_of(outcome: Outcome) -> str:
    return STREAMS[outcome.name][0]


@pytest.fixture(scope="module")
def published():
    """The packets of each film, read once."""
    read: dict = {}

    def of(film: str):
        if film not in read:
            read[film] = packets.probe(sources.source(film), prober=tools.FFPROBE)
        return read[film]

    return of


def judge(published, outcome: Outcome, served, *, whole: bool = True) -> list[str]:
    film, sender = STREAMS[outcome.name]
    if sender != "gstreamer":
        return packets.compare(published(film), served, variable=sources.RECIPES[film].variable, whole=whole)
    # GStreamer's flvmux rounds times down to milliseconds. It sends 0 for the negative decode times of the first frames and
    # for the priming frame of the audio, and it holds back the last audio frame.
    sent = {"video": published(film)["video"], "audio": published(film)["audio"][:-1]}
    return packets.compare(sent, served, variable=True, whole=whole, trusted_from=3, skew=Fraction(1024, 48000))


def earlier_periods(outcome: Outcome) -> dict[str, int]:
    """How many samples of each kind are in all Periods but the last one, which is all that ffmpeg plays. There are none, unless
    the first media came late: a machine that is busy holds up a publisher, and a Period has one clock."""
    found: dict[str, int] = {}
    periods = list(dict.fromkeys(r.period for r in outcome.dash.last.representations))
    assert len(periods) - 1 <= len(hls.steps_told(outcome.weir.text(), outcome.name)), periods
    for r in outcome.dash.last.representations:
        if r.period != periods[-1]:
            movie = boxes.read_movie(outcome.bytes_of(r.init))
            for entry in r.entries:
                read = boxes.read_segment(outcome.bytes_of(entry.url), movie)
                found[r.kind] = found.get(r.kind, 0) + sum(len(run.samples) for f in read.fragments for run in f.runs)
    return found


def most_missing(outcome: Outcome) -> int:
    """Video frames before those of a viewer who polls: one GOP, and whole ones as the viewer was itself held up."""
    recipe = sources.RECIPES[film_of(outcome)]
    return recipe.gop + int(outcome.late * Fraction(recipe.rate or 0)) // recipe.gop * recipe.gop


def check_decoded(published, outcome: Outcome, target, *options: str, missing: int = 0) -> None:
    """`missing`: number of frames that may be missing because of ffmpeg's demuxer or a late start."""
    film = film_of(outcome)
    errors, frames = packets.decode(target, *options, decoder=packets.decoder_for(film))
    assert errors == ""
    expected = {kind: len(sent) for kind, sent in published(film).items()}
    if target == outcome.manifest:
        expected = {kind: count - earlier_periods(outcome).get(kind, 0) for kind, count in expected.items()}
    assert 0 <= expected.get("video", 0) - frames.get("video", 0) <= missing
    # Audio before the first video frame, and priming samples, are not played.
    assert 0 <= expected.get("audio", 0) - frames.get("audio", 0) <= 6 + 2 * missing


def test_hls_playlists_obey_the_rules_while_live_and_after(outcome):
    nothing_wrong(hls.unexplained(outcome.hls.problems, outcome.weir.text(), outcome.name))
    assert outcome.media().ended
    assert not [s for s in outcome.media().segments if s.discontinuity]


def test_hls_segments_obey_the_box_rules(outcome):
    nothing_wrong(outcome.check_hls_boxes())


def test_hls_has_every_published_sample_at_its_time(outcome, published):
    nothing_wrong(judge(published, outcome, outcome.walked_hls()))


def test_ffprobe_reads_the_same_from_hls(outcome, published):
    served = packets.probe(outcome.index, "-allowed_extensions", "ALL")
    nothing_wrong(judge(published, outcome, served))


def test_every_frame_of_hls_decodes(outcome, published):
    check_decoded(published, outcome, outcome.index, "-allowed_extensions", "ALL")


def test_the_multivariant_playlist_tells_the_truth(outcome):
    film = film_of(outcome)
    recipe = sources.RECIPES[film]
    # As it is after the end. The watch may have seen no state since the last segment.
    top = hls.parse_multivariant(outcome.index.read_text(), outcome.hls.index)
    nothing_wrong(hls.check_multivariant(top, has_video=bool(recipe.rate)))
    attributes = top.variants[0].attributes
    assert re.fullmatch(CODECS.get(film, H264), attributes["CODECS"])
    if recipe.rate:
        assert attributes["RESOLUTION"] == recipe.size
        if not recipe.variable:
            numerator, _, denominator = recipe.rate.partition("/")
            assert abs(float(attributes["FRAME-RATE"]) - int(numerator) / int(denominator or 1)) < 0.001
    playlist = outcome.media()
    sizes = [(len(outcome.bytes_of(playlist.absolute(s.uri))) * 8, float(s.duration)) for s in playlist.segments]
    average = sum(bits for bits, _ in sizes) / sum(length for _, length in sizes)
    peak = max(bits / length for bits, length in sizes if length >= playlist.target / 2)
    assert int(attributes["BANDWIDTH"]) >= 0.99 * peak
    assert 0.7 * average <= int(attributes["AVERAGE-BANDWIDTH"]) <= 1.3 * average


def test_dash_manifests_obey_the_rules_while_live_and_after(outcome):
    nothing_wrong(outcome.dash.problems)
    assert outcome.dash.last.type == "static"


def test_dash_segments_obey_the_box_rules_and_the_timeline(outcome):
    nothing_wrong(outcome.check_dash_boxes())


def test_dash_has_every_published_sample_at_its_time(outcome, published):
    nothing_wrong(judge(published, outcome, outcome.walked_dash()))


def test_ffprobe_reads_the_same_from_dash(outcome, published):
    # ffmpeg's DASH demuxer stops when the first track ends, so the last packets of the other may be missing.
    served = packets.probe(outcome.manifest)
    nothing_wrong(judge(published, outcome, served, whole=False))
    for kind, sent in published(film_of(outcome)).items():
        assert len(sent) - earlier_periods(outcome).get(kind, 0) - len(served[kind]) <= 8


def test_every_frame_of_dash_decodes(outcome, published):
    check_decoded(published, outcome, outcome.manifest, missing=3)


def test_stream_mp4_has_every_published_sample_at_its_time(outcome, published):
    assert outcome.progressive_error == ""
    nothing_wrong(outcome.check_progressive_boxes())
    served = packets.probe(outcome.progressive)
    nothing_wrong(judge(published, outcome, served, whole=False))
    for kind, packet in served.items():
        assert packet[0].is_key
        last = -2 if STREAMS[outcome.name][1] == "gstreamer" and kind == "audio" else -1
        assert packet[-1].digest == published(film_of(outcome))[kind][last].digest, f"the last {kind} is missing"


def test_who_asks_for_stream_mp4_before_the_stream_gets_it_from_its_start(outcome, published):
    served, film = packets.probe(outcome.progressive), film_of(outcome)
    lead, gop = "video" if "video" in served else "audio", sources.RECIPES[film].gop
    # A viewer polls, and may be held up itself.
    missing = len(published(film)[lead]) - len(served[lead])
    assert missing % gop == 0 and missing <= most_missing(outcome) or (lead == "audio" and missing < 48 * (1 + outcome.late))


def test_every_frame_of_stream_mp4_decodes(outcome, published):
    check_decoded(published, outcome, outcome.progressive, missing=most_missing(outcome))


def test_the_recording_is_an_ordinary_mp4_with_its_moov_first(outcome):
    assert len(outcome.recordings) == 1, outcome.catalogue
    nothing_wrong(recordings.check_recording(outcome.recordings[0]))
    assert re.fullmatch(r"\d{8}T\d{6}Z\.mp4", outcome.recordings[0].name)


def test_the_recording_has_every_published_sample_at_its_time(outcome, published):
    nothing_wrong(judge(published, outcome, packets.probe(outcome.recordings[0])))


def test_every_frame_of_the_recording_decodes(outcome, published):
    check_decoded(published, outcome, outcome.recordings[0])


def test_the_catalogue_says_what_the_recording_is(outcome, published):
    (entry,) = outcome.catalogue
    assert entry["state"] == "completed"
    assert entry["bytes"] == outcome.recordings[0].stat().st_size
    sent = published(film_of(outcome))
    lead = sent.get("video") or sent["audio"]
    assert abs(entry["seconds"] - float(lead[-1].pts - lead[0].pts)) < 0.2


@pytest.mark.parametrize("name, seconds", [("h264-30", 3.0), ("h264-2997", 5.005), ("hevc", 4.0), ("long-gop", 11.0)])
def test_seeking_in_the_recording_shows_the_right_frame(matrix, name, seconds):
    outcome = matrix[0][name]
    film = sources.source(film_of(outcome))

    def frame(target, *seek: str) -> str:
        done = tools.run(tools.FFMPEG, "-v", "error", *seek, "-i", target, "-map", "0:v", "-frames:v", "1",
                         "-f", "framemd5", "-")
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout.splitlines()[-1].rsplit(",", 1)[1].strip()

    seek = ("-ss", str(seconds))
    assert frame(outcome.recordings[0], *seek) == frame(film, *seek)
    assert frame(outcome.recordings[0], *seek) != frame(outcome.recordings[0])


@pytest.mark.parametrize("name, gop", [("gop-1920", 1.92), ("gop-1500", 1.5)])
def test_a_gop_shorter_than_the_segment_target_is_a_segment(matrix, name, gop):
    segments = matrix[0][name].media().segments
    whole = [float(segment.duration) for segment in segments[:-1]]
    assert whole and all(abs(length / gop - round(length / gop)) < 0.001 for length in whole), whole


@pytest.mark.parametrize("name", ["h264-open", "hevc-open"])
def test_an_open_group_of_pictures_is_a_segment_of_its_length(matrix, name):
    outcome = matrix[0][name]
    lengths = [float(segment.duration) for segment in outcome.media().segments]
    # Three frames of the second GOP are shown before its key frame.
    assert [round(length, 3) for length in lengths[1:-1]] == [2.0] * (len(lengths) - 2), lengths
    assert 1.85 < lengths[0] < 2.0, lengths
    earlier_periods(outcome)
    assert not outcome.api["warnings"], outcome.api


@pytest.mark.parametrize("kind", ["hls", "dash"])
def test_a_live_ffmpeg_viewer_reads_on_without_a_hole(matrix, published, kind):
    viewer = matrix[1][kind]
    # ffmpeg does not notice that a manifest became static. Interrupted while it waits, it reports that, and a failed read of
    # the manifest. A wrong response of the server would be reported with its status.
    interrupted = re.fullmatch(
        r"(\[dash @ 0x[0-9a-f]+\] Unable to read to manifest '[^']*'\s*)?"
        r"\[dash @ 0x[0-9a-f]+\] Error when loading first fragment of playlist\s*", viewer.log)
    assert viewer.log == "" or (kind == "dash" and interrupted)
    sent = [p.digest for p in published("h264-30")["video"]]
    got = viewer.digests()
    if kind == "dash":
        # libavformat 5.1 reads the newest segment again while it waits for the next one. No packet may be missing, and the first
        # copy of each must be in its place.
        got = list(dict.fromkeys(got))
    assert len(got) >= 120
    first = sent.index(got[0])
    assert got == sent[first : first + len(got)]
    assert first + len(got) == len(sent)


def test_a_stream_without_early_key_frames_is_warned_of_and_waits_for_its_gop(matrix):
    outcome, _, weir = matrix[0]["long-gop"], matrix[1], matrix[2]
    assert outcome.media().target >= 8
    assert any("key" in warning.lower() for warning in outcome.api["warnings"]), outcome.api
    assert outcome.media().independent


def test_the_api_names_the_tracks(outcome):
    film = film_of(outcome)
    recipe = sources.RECIPES[film]
    assert outcome.api["state"] == "ended"
    kinds = sorted(track["kind"] for track in outcome.api["tracks"])
    assert kinds == sorted((["video"] if recipe.rate else []) + (["audio"] if recipe.audio else []))
    joined = ",".join(t["codecString"] for t in sorted(outcome.api["tracks"], key=lambda t: t["kind"] != "video"))
    assert re.fullmatch(CODECS.get(film, H264), joined)


def test_the_publish_key_is_nowhere_to_be_seen(matrix, canary):
    outcomes, _, weir = matrix
    for path in ("/api/v1/streams", "/api/v1/recordings", "/", "/watch/h264-30", "/recordings", "/healthz"):
        assert canary.encode() not in weir.get(path).body
    for outcome in outcomes.values():
        for path in (outcome.folder / "mirror").rglob("*"):
            if path.suffix in (".m3u8", ".mpd"):
                assert canary not in path.read_text()
    assert canary not in weir.text()
