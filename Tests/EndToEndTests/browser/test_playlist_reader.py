"""The web player's parsers of playlists and fragments: its own modules, run in the browser."""

import json

import pytest

import watching

BASE = "http://example.test/live/s/e/av/index.m3u8"

WHOLE = """#EXTM3U
#EXT-X-VERSION:9
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,PART-HOLD-BACK=0.6,HOLD-BACK=6,CAN-SKIP-UNTIL=12
#EXT-X-PART-INF:PART-TARGET=0.2
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXT-X-INDEPENDENT-SEGMENTS
#EXT-X-MAP:URI="init-1.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05.500Z
#EXTINF:2.000000,
7.m4s
#EXTINF:1.5,a title, with a comma
8.m4s
#EXT-X-DISCONTINUITY
#EXT-X-GAP
#EXTINF:2,
9.m4s
#EXT-X-MAP:URI="init-2.mp4",BYTERANGE="700@0"
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:05:00.000Z
#EXT-X-PART:DURATION=0.2,URI="10.m4s",BYTERANGE="100@0",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.2,URI="10.m4s",BYTERANGE="50"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="10.m4s",BYTERANGE-START=150
#EXT-X-RENDITION-REPORT:URI="../360p/index.m3u8",LAST-MSN=10,LAST-PART=1
"""

DELTA = """#EXTM3U
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:7
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXT-X-SKIP:SKIPPED-SEGMENTS=2
#EXT-X-DISCONTINUITY
#EXT-X-GAP
#EXTINF:2,
9.m4s
#EXT-X-MAP:URI="init-2.mp4",BYTERANGE="700@0"
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:05:00.000Z
#EXTINF:0.4,
10.m4s
#EXT-X-ENDLIST
"""


@pytest.fixture
def run(chromium, demo):
    """Evaluates an expression with the player's modules as `playlist`, `timeline`, `rendition` and `boxes`."""
    chromium.open(f"{demo.web}/healthz")

    def evaluate(expression, *arguments):
        values = ", ".join(json.dumps(a) for a in arguments)
        return chromium.evaluate(f"""(async (...given) => {{
          const [playlist, timeline, rendition, boxes] = await Promise.all(
            ["playlist", "timeline", "rendition", "boxes"].map((name) => import(`/web/media/${{name}}.js`)));
          return {expression};
        }})({values})""")

    yield evaluate
    watching.leave(chromium)


def parse(run, text):
    return run("playlist.parseMedia(given[0], given[1])", text, BASE)


def test_a_media_playlist_is_read_whole(run):
    read = parse(run, WHOLE)
    assert (read["targetDuration"], read["partTarget"], read["canBlockReload"]) == (2, 0.2, True)
    assert (read["canSkipUntil"], read["partHoldBack"], read["holdBack"]) == (12, 0.6, 6)
    assert not read["isEnded"] and read["independentSegments"]
    assert [s["sequence"] for s in read["segments"]] == [7, 8, 9, 10]
    assert [s["discontinuity"] for s in read["segments"]] == [3, 3, 4, 4]
    assert [s["duration"] for s in read["segments"]] == [2, 1.5, 2, 0.4]
    assert [s["gap"] for s in read["segments"]] == [False, False, True, False]
    assert [s["complete"] for s in read["segments"]] == [True, True, True, False]
    first, second, third, made = read["segments"]
    assert first["url"] == "http://example.test/live/s/e/av/7.m4s"
    assert second["date"] - first["date"] == 2000, "a segment without a date begins where the one before it ended"
    assert third["date"] is None, "it is unknown how long a discontinuity took"
    assert made["map"] == {"url": "http://example.test/live/s/e/av/init-2.mp4", "range": {"offset": 0, "length": 700}}
    assert [p["range"] for p in made["parts"]] == [{"offset": 0, "length": 100}, {"offset": 100, "length": 50}]
    assert [p["independent"] for p in made["parts"]] == [True, False]
    assert read["hint"] == {"url": "http://example.test/live/s/e/av/10.m4s", "start": 150, "length": None}
    assert read["reports"] == ["http://example.test/live/s/e/360p/index.m3u8"]


def test_a_delta_update_gives_what_the_whole_playlist_would(run):
    both = run("""(() => {
      const former = playlist.parseMedia(given[0], given[2]);
      return [former, playlist.parseMedia(given[1], given[2], former)];
    })()""", WHOLE, DELTA, BASE)
    former, update = both
    assert update["segments"][:2] == former["segments"][:2]
    assert [s["sequence"] for s in update["segments"]] == [7, 8, 9, 10]
    assert [s["discontinuity"] for s in update["segments"]] == [3, 3, 4, 4]
    assert update["segments"][2]["map"] == former["segments"][1]["map"], "the map that was skipped still holds"
    assert update["segments"][3]["complete"] and update["isEnded"]


@pytest.mark.parametrize(("text", "word"), [("", "no playlist"), ("<html>", "no playlist"), (DELTA, "delta update")])
def test_what_cannot_be_read_is_refused_with_a_reason(run, text, word):
    assert word in run("(() => { try { playlist.parseMedia(given[0], given[1]); } catch (e) { return e.message; } })()", text, BASE)


def test_every_beginning_of_a_playlist_is_read_without_harm(run):
    # A response may be cut off anywhere. That gives fewer segments, but never a wrong one.
    counts = run("""Array.from(given[0], (_, n) => n).filter((n) => n > 7).map((n) => {
      const whole = playlist.parseMedia(given[0], given[1]).segments;
      const cut = playlist.parseMedia(given[0].slice(0, n), given[1]).segments;
      return cut.every((s, i) => s.sequence === whole[i].sequence);
    })""", WHOLE, BASE)
    assert all(counts) and len(counts) == len(WHOLE) - 8


def test_a_multivariant_playlist_names_its_audio(run):
    read = run("playlist.parseMultivariant(given[0], given[1])", """#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Main, stereo",LANGUAGE="de",CHANNELS="2",DEFAULT=YES,URI="e/audio/index.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=2000000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a"
e/video/index.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="e/video/iframes.m3u8"
""", "http://example.test/live/s/index.m3u8")
    assert read["variants"] == [{
        "url": "http://example.test/live/s/e/video/index.m3u8", "codecs": ["avc1.64001f", "mp4a.40.2"],
        "bandwidth": 2000000, "size": None, "audio": "a"}]
    assert read["renditions"] == [{
        "type": "AUDIO", "group": "a", "name": "Main, stereo", "url": "http://example.test/live/s/e/audio/index.m3u8",
        "isDefault": True, "language": "de", "channels": "2"}]


def test_the_time_axis_goes_on_over_reloads_and_gaps_in_sight(run):
    axis = run("""(() => {
      const line = new timeline.Timeline();
      const segment = (sequence, duration, date) => ({ sequence, duration, date });
      const told = [];
      line.update([segment(5, 2, 1000), segment(6, 2, 3000), segment(7, 0.4, 5000)]);
      line.anchor(6, 102.5);
      told.push(line.segments.map((s) => s.start), line.isAnchored);
      line.update([segment(6, 2, 3000), segment(7, 2, 5000), segment(8, 2, 7000)]);
      told.push(line.segments.map((s) => s.start), line.end, line.dateAt(105), line.at(104.6).sequence);
      line.anchor(6, 0);
      told.push(line.start);
      line.update([segment(20, 2, 31000)]);
      told.push(line.start, line.dateAt(line.start));
      return told;
    })()""")
    assert axis == [[100.5, 102.5, 104.5], True, [102.5, 104.5, 106.5], 108.5, 5500, 7, 102.5, 130.5, 31000]


def test_a_playlist_has_its_place_when_its_media_have_told_of_it_or_there_are_none(run):
    # Only gaps; a segment that is being made; a whole one beside it; and after its beginning was read.
    told = run("""(() => {
      const made = (sequence, gap) => ({ sequence, duration: 2, date: null, gap, complete: true, map: {}, parts: [] });
      const parts = { ...made(7, false), complete: false, parts: [{ gap: false }] };
      const one = new rendition.Rendition("main", given[0], 0);
      const told = [one.isPlaced];
      const tell = (segments) => {
        one.timeline.update(segments);
        told.push([one.isPlaced, one.timeline.readable?.sequence ?? null]);
      };
      tell([made(5, true)]);
      tell([made(5, true), { ...parts, parts: [] }]);
      tell([made(5, true), parts]);
      tell([made(5, true), made(6, false), parts]);
      one.timeline.anchor(6, 90);
      tell([made(5, true), made(6, false), parts]);
      return told;
    })()""", BASE)
    assert told == [False, [True, None], [True, None], [False, 7], [False, 6], [True, 6]]


def test_the_first_presentation_time_of_a_fragment_has_its_composition_offset(run):
    assert run("""(() => {
      const u32 = (n) => [n >>> 24, n >>> 16 & 255, n >>> 8 & 255, n & 255];
      const box = (name, ...parts) => {
        const body = parts.flat();
        return [...u32(body.length + 8), ...[...name].map((c) => c.charCodeAt(0)), ...body];
      };
      const traf = (id, tfdt, offset) => box("traf", box("tfhd", u32(0x020000), u32(id)), box("tfdt", u32(0), u32(tfdt)),
        box("trun", u32(0x01000a01), u32(1), u32(0), u32(100), u32(offset)));
      const tracks = [{ id: 1, kind: "audio", timescale: 1000 }, { id: 2, kind: "audio", timescale: 500 },
        { id: 3, kind: "video", timescale: 1000 }];
      const start = (...trafs) => boxes.startSeconds(new Uint8Array(box("moof", ...trafs)), tracks);
      return [start(traf(1, 4000, 40)), start(traf(1, 4000, -40)), start(traf(1, 4000, 0), traf(2, 1000, 10)), start(traf(9, 1, 0)),
        start(traf(1, 4000, 0), traf(3, 5000, 80))];
    })()""") == [4.04, 3.96, 2.02, None, 5.08]
