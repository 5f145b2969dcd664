import assert from "node:assert/strict";
import test from "node:test";

import { attributes, parseMedia, parseMultivariant } from "../../web/media/playlist.js";

const BASE = "https://example.org/live/cam/7/av.m3u8";

const LIVE = `#EXTM3U
#EXT-X-VERSION:10
#EXT-X-TARGETDURATION:2
#EXT-X-SERVER-CONTROL:CAN-BLOCK-RELOAD=YES,CAN-SKIP-UNTIL=12,PART-HOLD-BACK=0.75
#EXT-X-PART-INF:PART-TARGET=0.25
#EXT-X-MEDIA-SEQUENCE:40
#EXT-X-MAP:URI="init.mp4"
#EXT-X-PROGRAM-DATE-TIME:2026-01-02T03:04:05.000Z
#EXTINF:2.0,
40.m4s
#EXTINF:1.5,
41.m4s
#EXT-X-PART:DURATION=0.25,URI="42.0.m4s",INDEPENDENT=YES
#EXT-X-PART:DURATION=0.25,URI="42.1.m4s"
#EXT-X-PRELOAD-HINT:TYPE=PART,URI="42.2.m4s"
#EXT-X-RENDITION-REPORT:URI="../7/a.m3u8",LAST-MSN=42,LAST-PART=1
`;

test("a quoted attribute may contain commas", () => {
  assert.deepEqual([...attributes('CODECS="avc1.4d401f,mp4a.40.2",BANDWIDTH=800')],
    [["CODECS", "avc1.4d401f,mp4a.40.2"], ["BANDWIDTH", "800"]]);
});

test("a multivariant playlist names its variants, its audio and its session data", () => {
  const { variants, renditions, data } = parseMultivariant(`#EXTM3U
#EXT-X-SESSION-DATA:DATA-ID="weir.rewind",VALUE="3600"
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="AAC",DEFAULT=YES,URI="7/a.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=800000,CODECS="avc1.4d401f, mp4a.40.2",RESOLUTION=640x360,AUDIO="a"
7/v.m3u8
`, "https://example.org/live/cam/index.m3u8");
  assert.deepEqual(variants, [{
    url: "https://example.org/live/cam/7/v.m3u8", codecs: ["avc1.4d401f", "mp4a.40.2"], bandwidth: 800000,
    size: { width: 640, height: 360 }, audio: "a",
  }]);
  assert.equal(renditions[0].url, "https://example.org/live/cam/7/a.m3u8");
  assert.equal(renditions[0].isDefault, true);
  assert.equal(data.get("weir.rewind"), "3600");
});

test("a live media playlist ends with the segment that is being made", () => {
  const playlist = parseMedia(LIVE, BASE);
  assert.deepEqual(playlist.segments.map((s) => [s.sequence, s.duration, s.complete]), [[40, 2, true], [41, 1.5, true], [42, 0.5, false]]);
  assert.equal(playlist.segments[1].date, Date.parse("2026-01-02T03:04:07Z"));
  assert.deepEqual(playlist.segments[2].parts.map((p) => p.independent), [true, false]);
  assert.equal(playlist.hint?.url, "https://example.org/live/cam/7/42.2.m4s");
  assert.deepEqual(playlist.reports, ["https://example.org/live/cam/7/a.m3u8"]);
  assert.equal(playlist.canBlockReload, true);
  assert.equal(playlist.isEnded, false);
});

test("a delta update goes on from the playlist before it, and from no other", () => {
  const before = parseMedia(LIVE, BASE);
  const delta = `#EXTM3U
#EXT-X-TARGETDURATION:2
#EXT-X-MEDIA-SEQUENCE:40
#EXT-X-SKIP:SKIPPED-SEGMENTS=2
#EXTINF:2.0,
42.m4s
`;
  const segments = parseMedia(delta, BASE, before).segments;
  assert.deepEqual(segments.map((s) => s.sequence), [40, 41, 42]);
  assert.equal(segments[2].map?.url, "https://example.org/live/cam/7/init.mp4");
  assert.equal(segments[2].date, Date.parse("2026-01-02T03:04:08.500Z"));
  assert.throws(() => parseMedia(delta, BASE), /delta update/);
});

test("a byte range without an offset follows the one before it", () => {
  const { segments } = parseMedia(`#EXTM3U
#EXTINF:1,
#EXT-X-BYTERANGE:100@50
a.mp4
#EXTINF:1,
#EXT-X-BYTERANGE:30
a.mp4
`, BASE);
  assert.deepEqual(segments.map((s) => s.range), [{ length: 100, offset: 50 }, { length: 30, offset: 150 }]);
});

test("a gap and a discontinuity belong to the segment that follows", () => {
  const { segments } = parseMedia(`#EXTM3U
#EXT-X-DISCONTINUITY-SEQUENCE:3
#EXTINF:1,
a.m4s
#EXT-X-DISCONTINUITY
#EXT-X-GAP
#EXTINF:1,
b.m4s
#EXT-X-ENDLIST
`, BASE);
  assert.deepEqual(segments.map((s) => [s.discontinuity, s.gap]), [[3, false], [4, true]]);
});

test("what does not begin as a playlist is none", () => {
  for (const text of ["", "<html>", "#EXT-X-VERSION:3\n"]) assert.throws(() => parseMedia(text, BASE), /no playlist/);
});

/** With all that the reader knows: holes, ranges, parts of a segment that is being made, two init segments. */
const WHOLE = `#EXTM3U
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
`;

/** The same later: its first two segments are skipped, and the last one is whole. */
const DELTA = `#EXTM3U
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
`;

test("a media playlist is read whole", () => {
  const read = parseMedia(WHOLE, BASE);
  assert.deepEqual([read.targetDuration, read.partTarget, read.canBlockReload], [2, 0.2, true]);
  assert.deepEqual([read.canSkipUntil, read.partHoldBack, read.holdBack], [12, 0.6, 6]);
  assert.deepEqual([read.isEnded, read.independentSegments], [false, true]);
  assert.deepEqual(read.segments.map((s) => [s.sequence, s.discontinuity, s.duration, s.gap, s.complete]),
    [[7, 3, 2, false, true], [8, 3, 1.5, false, true], [9, 4, 2, true, true], [10, 4, 0.4, false, false]]);
  const [first, second, third, made] = read.segments;
  assert.equal(first.url, "https://example.org/live/cam/7/7.m4s");
  assert.equal(second.date - first.date, 2000, "a segment without a date begins where the one before it ended");
  assert.equal(third.date, null, "it is unknown how long a discontinuity took");
  assert.deepEqual(made.map, { url: "https://example.org/live/cam/7/init-2.mp4", range: { offset: 0, length: 700 } });
  assert.deepEqual(made.parts.map((p) => [p.range, p.independent]),
    [[{ offset: 0, length: 100 }, true], [{ offset: 100, length: 50 }, false]]);
  assert.deepEqual(read.hint, { url: "https://example.org/live/cam/7/10.m4s", start: 150, length: null });
  assert.deepEqual(read.reports, ["https://example.org/live/cam/360p/index.m3u8"]);
});

test("a delta update gives what the whole playlist would", () => {
  const former = parseMedia(WHOLE, BASE), update = parseMedia(DELTA, BASE, former);
  assert.deepEqual(update.segments.slice(0, 2), former.segments.slice(0, 2));
  assert.deepEqual(update.segments.map((s) => [s.sequence, s.discontinuity]), [[7, 3], [8, 3], [9, 4], [10, 4]]);
  assert.deepEqual(update.segments[2].map, former.segments[1].map, "the map that was skipped still holds");
  assert.deepEqual([update.segments[3].complete, update.isEnded], [true, true]);
});

test("every beginning of a playlist is read without harm: it has fewer segments, but no wrong one", () => {
  const whole = parseMedia(WHOLE, BASE).segments;
  for (let length = 8; length < WHOLE.length; length += 1) {
    const cut = parseMedia(WHOLE.slice(0, length), BASE).segments;
    assert.deepEqual(cut.map((s) => s.sequence), whole.slice(0, cut.length).map((s) => s.sequence), `${length} bytes`);
  }
});

test("an audio rendition has its language, its channels and its name with commas", () => {
  const { variants, renditions } = parseMultivariant(`#EXTM3U
#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="Main, stereo",LANGUAGE="de",CHANNELS="2",DEFAULT=YES,URI="e/audio/index.m3u8"
#EXT-X-STREAM-INF:BANDWIDTH=2000000,CODECS="avc1.64001f,mp4a.40.2",AUDIO="a"
e/video/index.m3u8
#EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=1,URI="e/video/iframes.m3u8"
`, "https://example.org/live/s/index.m3u8");
  assert.deepEqual(variants, [{
    url: "https://example.org/live/s/e/video/index.m3u8", codecs: ["avc1.64001f", "mp4a.40.2"], bandwidth: 2000000, size: null, audio: "a",
  }]);
  assert.deepEqual(renditions, [{
    type: "AUDIO", group: "a", name: "Main, stereo", url: "https://example.org/live/s/e/audio/index.m3u8", isDefault: true, language: "de",
    channels: "2",
  }]);
});
