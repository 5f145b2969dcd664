import assert from "node:assert/strict";
import test from "node:test";

import { PieceSplitter, readInit, startSeconds } from "../../web/media/boxes.js";

const u32 = (/** @type {number} */ value) => [value >>> 24, value >> 16 & 255, value >> 8 & 255, value & 255];
const zeros = (/** @type {number} */ count) => Array(count).fill(0);

/** @param {string} type @param {(number | number[])[]} body @returns {number[]} */
const box = (type, ...body) => {
  const bytes = body.flat();
  return [...u32(bytes.length + 8), ...Buffer.from(type), ...bytes];
};

/** @param {number} id @param {string} handler @param {number} timescale @param {number[]} entry */
const trak = (id, handler, timescale, entry) => box("trak",
  box("tkhd", zeros(12), u32(id)),
  box("mdia", box("mdhd", zeros(12), u32(timescale)), box("hdlr", zeros(8), [...Buffer.from(handler)]),
    box("minf", box("stbl", box("stsd", zeros(4), u32(1), entry)))));

const video = box("avc1", zeros(24), [5, 0, 2, 208], zeros(50), box("avcC", [1, 0x4d, 0x40, 0x1f]));
const esds = box("esds", zeros(4), [3, 25, 0, 1, 0, 4, 17, 0x40, 0x15], zeros(11), [5, 2, 0x11, 0x90]);
const audio = box("mp4a", zeros(28), esds);
const init = [...box("ftyp", zeros(8)), ...box("moov", trak(1, "vide", 90000, video), trak(2, "soun", 48000, audio))];

/** @param {number} videoTime @param {number} audioTime Of the tracks' own ticks. */
const media = (videoTime, audioTime) => [
  ...box("moof",
    box("traf", box("tfhd", zeros(4), u32(2)), box("tfdt", zeros(4), u32(audioTime)), box("trun", zeros(4), u32(1))),
    box("traf", box("tfhd", zeros(4), u32(1)), box("tfdt", zeros(4), u32(videoTime)), box("trun", zeros(4), u32(1)))),
  ...box("mdat", [1, 2, 3])];

test("an init segment announces its tracks", () => {
  assert.deepEqual(readInit(new Uint8Array(init)), [
    { id: 1, kind: "video", codec: "avc1.4d401f", timescale: 90000, width: 1280, height: 720 },
    { id: 2, kind: "audio", codec: "mp4a.40.2", timescale: 48000, width: 0, height: 0 },
  ]);
});

test("no beginning of an init segment makes the reader fail", () => {
  for (let length = 0; length < init.length; length += 1) readInit(new Uint8Array(init.slice(0, length)));
});

test("a stream is cut into the same pieces however the network chopped it", () => {
  const stream = [...init, ...media(0, 0), ...media(90000, 48000)];
  for (const size of [1, 7, 100, stream.length]) {
    const splitter = new PieceSplitter();
    const pieces = [];
    for (let at = 0; at < stream.length; at += size) pieces.push(...splitter.push(new Uint8Array(stream.slice(at, at + size))));
    assert.deepEqual(pieces.map((p) => p.kind), ["init", "media", "media"], `chunks of ${size}`);
    assert.deepEqual(pieces.flatMap((p) => [...p.bytes]), stream);
  }
});

test("what is no live MP4 is refused", () => {
  assert.throws(() => new PieceSplitter().push(new Uint8Array(box("mdat", [1]))), /before the init segment/);
  assert.throws(() => new PieceSplitter().push(new Uint8Array([0, 0, 0, 4, ...Buffer.from("free")])), /not a live MP4/);
});

test("a segment begins with its video, though audio may lie before", () => {
  const tracks = readInit(new Uint8Array(init));
  assert.equal(startSeconds(new Uint8Array(media(180000, 48000)), tracks), 2);
  assert.equal(startSeconds(new Uint8Array(media(180000, 48000)), tracks.slice(1)), 1);
  assert.equal(startSeconds(new Uint8Array(8), tracks), null);
});

test("the first presentation time of a fragment has its composition offset", () => {
  const traf = (id, tfdt, offset) => box("traf", box("tfhd", u32(0x020000), u32(id)), box("tfdt", u32(0), u32(tfdt)),
    box("trun", u32(0x01000a01), u32(1), u32(0), u32(100), u32(offset)));
  const track = (id, kind, timescale) => ({ id, kind, timescale, codec: "", width: 0, height: 0 });
  const tracks = [track(1, "audio", 1000), track(2, "audio", 500), track(3, "video", 1000)];
  const start = (...trafs) => startSeconds(new Uint8Array(box("moof", ...trafs)), tracks);
  assert.equal(start(traf(1, 4000, 40)), 4.04);
  assert.equal(start(traf(1, 4000, -40)), 3.96);
  assert.equal(start(traf(1, 4000, 0), traf(2, 1000, 10)), 2.02, "the earliest of the audio tracks");
  assert.equal(start(traf(9, 1, 0)), null, "no track that is known");
  assert.equal(start(traf(1, 4000, 0), traf(3, 5000, 80)), 5.08, "its video");
});
