"""LL-DASH (ISO/IEC 23009-1, DASH-IF IOP 5 low latency): promises of the manifest, measured by the clock, the media and
the connection; patches from any manifest to the newest; ffmpeg as a player."""

import contextlib
import dataclasses
import random
import re
import statistics
import threading
import time
import xml.etree.ElementTree as ElementTree

import pytest

from harness import box_rules, boxes, dash, hls, http, mpd_patch, nothing_wrong, packets, publishers, scripts, sources, tools
from harness.outcome import Outcome

NAME = "cam"
CHUNK = 0.2
SEGMENT = 2.0


class Clock:
    """The server's clock (UTCTiming), by the fastest of a few requests."""

    def __init__(self, url: str):
        tries = []
        for _ in range(7):
            before = time.time()
            said = dash.moment(http.fetch(url).good().text).timestamp()
            after = time.time()
            tries.append((after - before, said - (before + after) / 2))
        self.offset = min(tries)[1]

    def now(self) -> float:
        return time.time() + self.offset

    def sleep_until(self, when: float) -> None:
        time.sleep(max(0.0, when - self.now()))


@dataclasses.dataclass
class Live:
    weir: object
    url: str
    clock: Clock

    def manifest(self) -> dash.Manifest:
        return dash.parse(http.fetch(self.url).good().text, self.url)

    def pair(self) -> dict[str, dash.Representation]:
        """The representations of the newest Period by kind."""
        manifest = self.manifest()
        return {r.kind: r for r in manifest.representations if r.period == manifest.representations[-1].period}


@contextlib.contextmanager
def published(weir, film: str):
    """A stream with key frames at a constant interval, once that is known."""
    publisher = publishers.ffmpeg(film, f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        url = f"{weir.web}/live/{NAME}/manifest.mpd"
        weir.wait(lambda: "availabilityTimeOffset" in weir.get(url).text, 30, "the segment in the making is listed", 0.2)
        yield Live(weir, url, Clock(f"{weir.web}/time"))
    finally:
        publisher.kill()


@pytest.fixture(scope="module")
def live(start_shared):
    """A stream with a key frame every two seconds."""
    sources.source("steady")
    with published(start_shared("--no-record"), "steady") as live:
        yield live


@pytest.fixture(scope="module")
def watched(start_shared):
    """All manifests of a stream that is lost and returns, with the results of patches on the earlier ones."""
    weir = start_shared("--no-record", "--window", "20s")
    sources.flv("short")
    url = f"{weir.web}/live/drops/manifest.mpd"
    publisher = threading.Thread(target=scripts.line_drops(1.2), args=(weir.rtmp, "drops"), daemon=True)
    publisher.start()
    states: list[str] = []
    problems: list[str] = []
    patched = 0
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        answer = http.fetch(url)
        if answer.status == 200 and answer.text not in states[-1:]:
            for state in states[-12:]:
                count, found = check_patch(url, state, answer.text)
                patched += count
                problems += found
            states.append(answer.text)
            if 'type="static"' in answer.text:
                break
        time.sleep(0.03)
    publisher.join(10)
    return weir, url, states, patched, problems


def patch_url(url: str, manifest: str) -> str | None:
    node = ElementTree.fromstring(manifest).find(f"{{{dash.NAMESPACE}}}PatchLocation")
    return None if node is None else f"{url.rsplit('/', 1)[0]}/{node.text}"


def check_patch(url: str, old: str, new: str) -> tuple[int, list[str]]:
    """Whether the patch of `old` gives `new`, if it leads there at all: there may be a newer manifest."""
    where = patch_url(url, old)
    if where is None:
        # Without a publisher, only whole manifests are served.
        return 0, []
    answer = http.fetch(where)
    if answer.status != 200:
        return 0, [f"D18 {where}: status {answer.status}"]
    problems = []
    if "/MPD/PatchLocation[1]" in answer.text and "<remove" in answer.text.split("PatchLocation")[0]:
        # More has changed than a patch can express: the next update is a whole manifest.
        left = ElementTree.fromstring(mpd_patch.apply(old, answer.text))
        gone = left.find(f"{{{dash.NAMESPACE}}}PatchLocation") is None
        return 0, [] if gone else [f"D18 {where} leaves a PatchLocation"]
    if answer.headers["content-type"].split(";")[0] != "application/dash-patch+xml":
        problems.append(f"D18 {where} is {answer.headers['content-type']}")
    target = ElementTree.fromstring(answer.text).get("publishTime")
    try:
        result = mpd_patch.apply(old, answer.text)
    except mpd_patch.PatchError as error:
        return 0, problems + [str(error)]
    if target != ElementTree.fromstring(new).get("publishTime"):
        return 0, problems
    if re.search("utc:direct|/MPD/UTCTiming", answer.text) and 'type="dynamic"' in new:
        problems.append(f"D18 {where} changes a clock")
    # The time at which a manifest was made is only in whole manifests. It is for players without a clock source.
    told = re.compile(r'(?<=urn:mpeg:dash:utc:direct:2014" value=")[^"]*')
    wanted = mpd_patch.canonical(told.sub(told.search(old)[0], new) if told.search(old) else new)
    if result != wanted:
        problems.append(f"D18 {where} leads to\n{result}\ninstead of\n{wanted}")
    return 1, problems


# The manifest


def test_the_manifest_says_how_to_play_at_low_latency(live):
    manifest = live.manifest()
    nothing_wrong(dash.check(manifest))
    root = ElementTree.fromstring(manifest.text)

    def all_of(name):
        return list(root.iter(f"{{{dash.NAMESPACE}}}{name}"))

    everybody, low_latency = all_of("ServiceDescription")
    for description in (everybody, low_latency):
        latency = description.find(f"{{{dash.NAMESPACE}}}Latency")
        low, aim, high = (int(latency.get(name)) for name in ("min", "target", "max"))
        # Not below what a player can know (one update period), and not beyond that of ordinary players.
        assert SEGMENT * 1000 <= low <= aim <= SEGMENT * 1000 + 5 * CHUNK * 1000 and aim < high <= 3 * SEGMENT * 1000
    # Shaka Player would play slower until it is behind by the latency and the suggested delay: it follows the first one, or none.
    rates = [[float(one.find(f"{{{dash.NAMESPACE}}}PlaybackRate").get(bound)) for bound in ("min", "max")]
             for one in (everybody, low_latency)]
    assert rates[0][0] == 1 < rates[0][1] <= 1.1 and 0.9 <= rates[1][0] < 1 < rates[1][1] <= 1.1, rates
    scopes = [[scope.get("schemeIdUri") for scope in one.findall(f"{{{dash.NAMESPACE}}}Scope")] for one in (everybody, low_latency)]
    assert scopes == [[], ["urn:dvb:dash:lowlatency:scope:2019"]]
    assert dash.seconds(root.get("suggestedPresentationDelay")) == 3 * SEGMENT
    assert dash.seconds(root.get("minimumUpdatePeriod")) == SEGMENT
    for r in live.pair().values():
        assert abs(float(r.early) - (SEGMENT - CHUNK)) < 0.001
        assert r.template["availabilityTimeComplete"] == "false"
    sets = all_of("AdaptationSet")
    for group in sets:
        (reference,) = group.findall(f"{{{dash.NAMESPACE}}}ProducerReferenceTime")
        assert reference.get("inband") == "true" and reference.get("id") == latency.get("referenceId")
        assert reference.find(f"{{{dash.NAMESPACE}}}UTCTiming").get("schemeIdUri") == "urn:mpeg:dash:utc:http-iso:2014"
        assert [r.get("type") for r in group.findall(f"{{{dash.NAMESPACE}}}Resync")] == (
            ["1"] if group.get("contentType") == "audio" else ["0"])
    assert len(sets) == 2


def test_clock_manifest_patch_and_media_may_be_read_from_other_origins(live):
    manifest = live.manifest()
    timing, _ = manifest.timing
    assert timing == ("urn:mpeg:dash:utc:http-iso:2014", "/time")
    for url in (f"{live.weir.web}/time", live.url, patch_url(live.url, manifest.text), live.pair()["video"].init):
        answer = http.fetch(url, headers={"Origin": "https://player.example"})
        assert answer.status == 200
        assert answer.headers["access-control-allow-origin"] == "*", url
    assert abs(live.clock.offset) < 0.1, "the test and the server run on one machine"


# Availability


def fetch_when_available(live: Live, rounds: int) -> tuple[list[str], list[tuple[str, float]]]:
    """Asks for the next segments of both tracks, computed from a manifest that does not list them yet, at their availability time
    or a little earlier. What is wrong with the responses, and by how much the first byte of each is late."""
    chance = random.Random(7)
    problems: list[str] = []
    late: list[tuple[str, float]] = []

    def fetch(manifest: dash.Manifest, r: dash.Representation) -> None:
        last = r.entries[-1]
        ticks = last.time + last.duration
        early = chance.uniform(0, 0.1)
        live.clock.sleep_until(manifest.available(r, ticks, last.duration).timestamp() - early)
        began = time.monotonic()
        answer = http.Stream(last.url.replace(f"-{last.time}.m4s", f"-{ticks}.m4s"))
        first = answer.answer.read1(1 << 16) if answer.status == 200 else b""
        took = time.monotonic() - began
        answer.close()
        where = f"{r.kind} t{ticks}, asked for {early * 1000:.0f} ms early"
        late.append((where, took - early))
        if answer.status != 200 or not first:
            problems.append(f"D08 {where}: {answer.status} after {took:.3f} s")

    for _ in range(rounds):
        manifest = live.manifest()
        newest = [r for r in manifest.representations if r.period == manifest.representations[-1].period]
        threads = [threading.Thread(target=fetch, args=(manifest, r), daemon=True) for r in newest]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
    assert len(late) == 2 * rounds
    return problems, late


def test_a_segment_fetched_at_its_availability_time_or_a_little_earlier_is_there(live):
    nothing_wrong(fetch_when_available(live, 3)[0])


def test_what_is_far_ahead_is_not_there(live):
    last = live.pair()["video"].entries[-1]
    beyond = last.url.replace(f"-{last.time}.m4s", f"-{last.time + 5 * last.duration}.m4s")
    assert http.fetch(beyond).status == 404


# Chunks


@dataclasses.dataclass
class Followed:
    representation: dash.Representation
    entry: dash.Entry
    pieces: list[tuple[float, bytes]]  # when, by the server's clock
    end: float
    headers: dict[str, str]

    @property
    def data(self) -> bytes:
        return b"".join(piece for _, piece in self.pieces)


@pytest.fixture(scope="module")
def followed(live):
    return follow_newest(live, 2)


def follow_newest(live: Live, rounds: int) -> list[Followed]:
    """Segments of both tracks, read while they are made."""
    found: list[Followed] = []
    for _ in range(rounds):
        threads = [threading.Thread(target=follow, args=(live, r, stream, found), daemon=True)
                   for r, stream in begun(lambda: list(live.pair().values()))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert len(found) == 2 * rounds
    return found


def begun(newest) -> list[tuple[dash.Representation, http.Stream]]:
    """The newest representations once each has a further segment, and a response for that which began in the first half of its
    time. After a delay it is the next segment's."""
    for _ in range(5):
        absent = time.monotonic()
        known = {r.entries[-1].url for r in newest()}
        while True:
            asked = time.monotonic()
            fresh = newest()
            if not known & {r.entries[-1].url for r in fresh}:
                break
            absent = asked
            time.sleep(0.02)
        responses = [(r, http.Stream(r.entries[-1].url)) for r in fresh]
        if time.monotonic() - absent < SEGMENT / 2:
            break
    return responses


def follow(live: Live, r: dash.Representation, stream: http.Stream, found: list[Followed]) -> None:
    entry = r.entries[-1]
    assert stream.status == 200
    pieces = []
    while piece := stream.answer.read1(1 << 16):
        pieces.append((live.clock.now(), piece))
    headers = {name.lower(): value for name, value in stream.answer.getheaders()}
    found.append(Followed(r, entry, pieces, live.clock.now(), headers))
    stream.close()


def test_chunks_are_sent_while_the_segment_is_made(followed):
    for one in followed:
        # The length was not known when the response began.
        assert one.headers.get("transfer-encoding") == "chunked" and "content-length" not in one.headers
        assert len(one.pieces) >= 3, "it was there at once"


def test_what_came_in_chunks_is_the_segment(followed):
    for one in followed:
        whole = http.fetch(one.entry.url).good()
        assert whole.body == one.data
        assert int(whole.headers["content-length"]) == len(one.data)


def test_listed_times_are_the_medias_to_the_tick(live, followed):
    problems = []
    for one in followed:
        movie = boxes.read_movie(http.fetch(one.representation.init).good().body)
        (track,) = movie.tracks
        read = boxes.read_segment(one.data, movie)
        problems += box_rules.check_segment(read, movie, box_rules.Continuity(), tracks="one")
        earliest = box_rules.earliest_presentation(read, track)
        length = sum(s.duration for f in read.fragments for run in f.runs for s in run.samples)
        if (earliest, length) != (one.entry.time, one.entry.duration):
            problems.append(f"D06 {one.entry}: earliest {earliest}, {length} ticks")
        if len({e.url for e in one.representation.entries}) != len(one.representation.entries):
            problems.append(f"D06 {one.representation.entries}")
    later = {e.url: e for r in live.manifest().representations for e in r.entries}
    problems += [f"D06 {one.entry} became {later[one.entry.url]}" for one in followed
                 if one.entry.url in later and later[one.entry.url] != one.entry]
    nothing_wrong(problems)


def test_audio_in_another_codec_is_listed_while_it_is_made(start):
    weir = start("--audio-codec", "opus", "--no-record")
    publisher = publishers.ffmpeg("steady", f"{weir.rtmp}/live/{NAME}", loop=-1)
    try:
        url = f"{weir.web}/live/{NAME}/manifest.mpd"
        weir.wait(lambda: all(part in weir.get(url).text for part in ("availabilityTimeOffset", "/opus/")), 30, "both", 0.2)
        live = Live(weir, url, Clock(f"{weir.web}/time"))

        def newest() -> dash.Representation:
            return [r for r in live.manifest().representations if r.codecs.lower() == "opus"][-1]

        found: list[Followed] = []
        for _ in range(2):
            [(fresh, stream)] = begun(lambda: [newest()])
            follow(live, fresh, stream, found)
        later = {e.url: e for e in newest().entries}
        for one in found:
            movie = boxes.read_movie(http.fetch(one.representation.init).good().body)
            read = boxes.read_segment(one.data, movie)
            length = sum(s.duration for f in read.fragments for run in f.runs for s in run.samples)
            assert (box_rules.earliest_presentation(read, next(iter(movie.tracks))), length) == (one.entry.time, one.entry.duration)
            assert later[one.entry.url] == one.entry
            assert len(one.pieces) >= 3, "it was there at once"
    finally:
        publisher.kill()


# Clocks


def test_prft_is_the_manifests_wall_clock(live, followed):
    manifest = live.manifest()
    for one in followed:
        movie = boxes.read_movie(http.fetch(one.representation.init).good().body)
        top = boxes.read_boxes(one.data)
        reference = boxes.read_prft(one.data, next(box for box in top if box.type == b"prft"))
        assert reference.time == one.entry.time and reference.track in movie.tracks
        told = manifest.wall(one.representation, reference.time).timestamp()
        assert abs(float(reference.wall) - told) < 0.002, "the Period's start is told in milliseconds"


def behind(manifest: dash.Manifest, one: Followed) -> list[float]:
    """How long after their announced ends the chunks of a video segment had arrived."""
    read = boxes.read_segment(one.data, boxes.read_movie(http.fetch(one.representation.init).good().body))
    found = []
    # The media of a chunk ends when its last frame begins: within one frame of the announced end.
    for fragment, when in list(zip(read.fragments, arrival_of_fragments(one, read)))[1:]:
        (run,) = fragment.runs
        end = min(s.dts for s in run.samples) + sum(s.duration for s in run.samples)
        found.append(when - manifest.wall(one.representation, end).timestamp())
    return found


def arrival_of_fragments(one: Followed, read: boxes.Segment) -> list[float]:
    """When the last byte of each fragment had arrived."""
    arrivals = []
    for fragment in read.fragments:
        count = 0
        for when, piece in one.pieces:
            count += len(piece)
            if count >= fragment.mdat.end:
                arrivals.append(when)
                break
    return arrivals


def test_hls_and_dash_tell_the_same_wall_clock_of_the_same_media(live):
    index = f"{live.weir.web}/live/{NAME}/index.m3u8"
    top = hls.parse_multivariant(http.fetch(index).good().text, index)
    media = top.absolute(top.variants[0].uri)
    playlist = hls.parse_media(http.fetch(media).good().text, media)
    # After the playlist: they list all that it lists.
    manifest, pair = live.manifest(), live.pair()
    movie = boxes.read_movie(http.fetch(playlist.absolute(playlist.segments[-1].map)).good().body)
    video = next(track for track in movie.tracks.values() if track.kind == "video")
    compared = 0
    for segment in playlist.segments[-4:]:
        read = boxes.read_segment(http.fetch(playlist.absolute(segment.uri)).good().body, movie)
        ticks = box_rules.earliest_presentation(read, video.id)
        r = pair["video"]
        assert r.timescale == video.timescale
        if ticks not in [e.time for e in r.entries]:
            continue
        apart = (manifest.wall(r, ticks) - segment.date).total_seconds()
        assert abs(apart) < 0.005, f"D20 {apart * 1000:.1f} ms apart"
        compared += 1
    assert compared >= 3


# Publication and patches


def test_a_patch_of_a_steady_stream_leads_to_exactly_the_newest_manifest(live):
    states: list[str] = []
    patched = 0
    problems: list[str] = []
    deadline = time.monotonic() + 60
    while patched < 4 and time.monotonic() < deadline:
        text = http.fetch(live.url).good().text
        if text not in states[-1:]:
            for state in states[-3:]:
                count, found = check_patch(live.url, state, text)
                patched += count
                problems += found
            states.append(text)
        time.sleep(0.05)
    nothing_wrong(problems)
    assert patched >= 4, f"{patched} patches for {len(states)} manifests"


def test_each_change_is_published_anew_and_later(watched):
    _, _, states, _, _ = watched
    times = [dash.moment(ElementTree.fromstring(state).get("publishTime")) for state in states]
    assert times == sorted(set(times)), "D03"
    assert len(states) >= 6


def test_patches_of_a_stream_that_is_lost_and_comes_back_are_exact_or_the_last(watched):
    _, _, states, _, problems = watched
    nothing_wrong(problems)
    periods = [[p.get("id") for p in ElementTree.fromstring(s).findall(f"{{{dash.NAMESPACE}}}Period")] for s in states]
    assert ["0"] in periods and ["0", "1"] in periods, "a Period came while patches were taken"
    assert 'type="static"' in states[-1]


def test_what_cannot_be_patched_is_a_patch_that_takes_its_own_address_away(watched):
    weir, url, states, _, _ = watched
    base = url.replace("manifest.mpd", "manifest.mpp")
    known = int(patch_url(url, states[0]).rsplit("=", 1)[1])
    for time_asked in (known - 1000, known + 10_000_000):
        patch = ElementTree.fromstring(http.fetch(f"{base}?from={time_asked}").good().text)
        assert [(one.tag.split("}")[1], one.get("sel")) for one in patch] == [
            ("remove", "/MPD/PatchLocation[1]"), ("replace", "/MPD/@publishTime")]
        assert dash.moment(patch.get("publishTime")) > dash.moment(patch.get("originalPublishTime"))
    for query in ("", "?from=", "?from=-1", "?from=2026-11-21T07:24:10Z", "?from=1e3", f"?from={'9' * 40}"):
        assert http.fetch(base + query).status == 400, query


def test_the_end_takes_low_latency_back(watched):
    _, url, states, _, _ = watched
    nothing_wrong(dash.check(dash.parse(states[-1], url)))
    for name in ("PatchLocation", "ServiceDescription", "availabilityTimeOffset", "UTCTiming value=\"/time\"/></MPD>"):
        assert name not in states[-1]


# Wrong guesses


@pytest.fixture(scope="module")
def uneven(start_shared, tmp_path_factory):
    """A stream whose key frames are regular for a while, and irregular afterwards."""
    weir = start_shared("--target-duration", "2")
    sources.source("uneven")
    outcome = Outcome(weir, "uneven", tmp_path_factory.mktemp("uneven"), progressive=False)
    publishers.ffmpeg("uneven", f"{weir.rtmp}/live/uneven").wait(40)
    return outcome.collect()


def test_what_was_listed_stays_when_a_segment_comes_out_shorter(uneven):
    nothing_wrong(uneven.dash.problems)
    nothing_wrong(uneven.check_dash_boxes())
    assert any("availabilityTimeOffset" in state.text for state in uneven.dash.states)
    periods = list(dict.fromkeys(r.period for r in uneven.dash.last.representations))
    assert len(periods) >= 2, "the segment that was cut short ends its Period"
    assert 'urn:mpeg:dash:period-continuity:2015' in uneven.dash.last.text


def test_a_wrong_guess_costs_no_sample_and_hls_does_not_notice(uneven):
    film = packets.probe(sources.source("uneven"))
    nothing_wrong(packets.compare(film, uneven.walked_dash()))
    nothing_wrong(hls.unexplained(uneven.hls.problems, uneven.weir.text(), "uneven"))
    nothing_wrong(packets.compare(film, uneven.walked_hls()))
    assert not [s for s in uneven.media().segments if s.discontinuity]


# Players


@pytest.fixture(scope="module")
def viewers(live, tmp_path_factory):
    """ffmpeg in two versions, at once."""
    folder = tmp_path_factory.mktemp("viewers")
    found = {version: publishers.Publisher([
        program, "-nostdin", "-v", "error", "-i", live.url, "-map", "0:v", "-c", "copy", "-t", "10",
        "-flush_packets", "1", "-f", "framemd5", str(folder / f"{version}.md5")])
        for version, program in (("debian", tools.FFMPEG), ("new", tools.new_ffmpeg()))}
    yield found, folder
    for viewer in found.values():
        viewer.kill()


@pytest.mark.parametrize("version", ["debian", "new"])
def test_ffmpeg_plays_the_live_manifest_without_a_hole(viewers, version):
    found, folder = viewers
    code, log = found[version].outcome(90)
    assert code == 0, log
    film = [p.digest for p in packets.probe(sources.source("steady"))["video"]]
    got = ["MD5:" + line.split(",")[5].strip() for line in (folder / f"{version}.md5").read_text().splitlines() if line[:1] == "0"]
    # libavformat may read the newest segment again while it waits. Nothing may be missing.
    got = list(dict.fromkeys(got))
    first = film.index(got[0])
    assert got == (film + film)[first : first + len(got)]
    assert len(got) >= 200, log


# By the clock


@pytest.mark.quiet
def test_chunks_arrive_when_the_manifest_says(start):
    """In segments of a second. The film has B-frames, so frames arrive up to their reorder delay before they are shown."""
    with published(start("--no-record", "--segment-duration", "1s"), "half-seconds") as live:
        problems, late = fetch_when_available(live, 2)
        followed = follow_newest(live, 2)
        manifest = live.manifest()
        nothing_wrong(problems + [f"D15 {where}: {by:.3f} s late" for where, by in late if by > 0.35])
        assert abs(statistics.median(by for one in followed if one.representation.kind == "video" for by in behind(manifest, one))) < 0.15
    for one in followed:
        length = one.entry.duration / one.representation.timescale
        ends = manifest.wall(one.representation, one.entry.time + one.entry.duration).timestamp()
        arrivals = [when for when, _ in one.pieces]
        # Listed after its first chunk, and at most the test's polling interval later.
        assert len(arrivals) >= length / CHUNK - 3, arrivals
        assert arrivals[-1] - arrivals[0] > length - 3 * CHUNK
        gaps = sorted(b - a for a, b in zip(arrivals, arrivals[1:]))
        assert gaps[-2] < 2.5 * CHUNK and gaps[-1] < 5 * CHUNK, gaps
        assert one.end < ends + 0.3, f"the response ends {one.end - ends:.3f} s after the segment"
