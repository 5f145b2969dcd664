import assert from "node:assert/strict";
import test from "node:test";

import { captionPairs } from "../../web/media/caption-data.js";
import { CaptionDecoder } from "../../web/media/caption-decoder.js";

/** @param {number} byte @returns {number} With odd parity. */
const odd = (byte) => byte | (byte.toString(2).replaceAll("0", "").length % 2 === 0 ? 0x80 : 0);
/** @param {string} text @returns {[number, number][]} */
const letters = (text) => [...text.matchAll(/..?/gs)].map(([pair]) => [pair.charCodeAt(0), pair.length > 1 ? pair.charCodeAt(1) : 0]);
/** @param {[number, number][]} pairs @returns {[number, number][]} Commands are sent twice. */
const twice = (...pairs) => pairs.flatMap((pair) => [pair, pair]);

/**
 * @param {[number, number][]} pairs One a frame, of 30 a second.
 * @param {1 | 2} channel
 * @returns {[number, string[]][]} Frames, and what is shown.
 */
function shown(pairs, channel = 1) {
  /** @type {[number, string[]][]} */
  const found = [];
  const decoder = new CaptionDecoder((time, lines) => found.push([Math.round(time * 30), lines.map((l) => `${l.row} ${l.text}`)]), channel);
  pairs.forEach(([first, second], n) => decoder.take(n / 30, odd(first), odd(second)));
  return found;
}

/** @param {number} count @returns {[number, number][]} */
const nothing = (count) => Array(count).fill([0, 0]);
const [RESUME, ROLL, PAINT, ERASE, RETURN, CLEAR, END] = [0x20, 0x25, 0x29, 0x2c, 0x2d, 0x2e, 0x2f]
  .map((code) => /** @type {[number, number]} */ ([0x14, code]));
/** @type {[number, number]} */
const LOWEST = [0x14, 0x70];

test("pop-on captions are shown when they are whole, and until they are erased", () => {
  const pairs = [...twice(CLEAR, RESUME, [0x13, 0x70]), ...letters("Two"), ...twice(LOWEST), ...letters("rows"), ...twice(END)];
  assert.deepEqual(shown([...pairs, ...nothing(9), ...twice(ERASE)]), [[12, ["13 Two", "15 rows"]], [23, []]]);
});

test("roll-up captions go up by a row, and the highest one goes", () => {
  const row = (/** @type {string} */ text) => [...twice(ROLL, RETURN, LOWEST), ...letters(text), ...nothing(8)];
  const found = shown([...row("one"), ...row("two"), ...row("three")]);
  assert.deepEqual(found.at(-1)?.[1], ["14 two", "15 three"]);
  assert.ok(found.some(([, lines]) => lines.join() === "14 one,15 two"));
});

test("paint-on captions are shown as they come", () => {
  const found = shown([...twice(PAINT, [0x11, 0x40]), ...letters("slowly painted"), ...nothing(8)]);
  assert.deepEqual(found.at(-1)?.[1], ["1 slowly painted"]);
  assert.ok(found.length > 1 && found.every(([, lines]) => "1 slowly painted".startsWith(lines[0])));
});

test("letters beyond ASCII, and those that replace the one before", () => {
  const pairs = [...twice(RESUME, LOWEST), ...letters("*n~"), ...twice([0x11, 0x37], [0x12, 0x21], [0x13, 0x34]), ...twice(END)];
  assert.deepEqual(shown(pairs)[0][1], ["15 ánñß"]);
});

test("the second channel has captions of its own, and so has the second field, between other data", () => {
  /** @type {[number, number][]} */
  const both = [...twice([0x14, 0x20], [0x14, 0x70]), ...letters("one"), ...twice([0x1c, 0x20], [0x1c, 0x70]), ...letters("second"),
    ...twice([0x14, 0x2f], [0x1c, 0x2f])];
  assert.deepEqual(shown(both).at(-1)?.[1], ["15 one"]);
  assert.deepEqual(shown(both, 2).at(-1)?.[1], ["15 second"]);
  // Codes of the second field, and the name of a programme.
  const field = [...twice([0x15, 0x20], LOWEST), ...letters("third"), /** @type {[number, number]} */ ([0x01, 0x03]),
    ...letters("Name"), /** @type {[number, number]} */ ([0x0f, 0x1d]), ...twice([0x15, 0x2f])];
  assert.deepEqual(shown(field).at(-1)?.[1], ["15 third"]);
});

test("other channels, text and what is damaged show nothing", () => {
  assert.deepEqual(shown([...twice([0x1c, 0x20], [0x1c, 0x70]), ...letters("second"), ...twice([0x1c, 0x2f])]), []);
  assert.deepEqual(shown([...twice([0x14, 0x2a]), ...letters("text"), ...nothing(9)]), []);
  assert.deepEqual(shown([...letters("without a mode"), ...nothing(9)]), []);
  for (let first = 0; first < 256; first += 1) {
    const decoder = new CaptionDecoder((_, lines) => assert.ok(lines.every((l) => l.row >= 1 && l.row <= 15 && l.text.length <= 32)));
    for (const mode of [RESUME, ROLL, PAINT]) {
      decoder.take(0, ...mode);
      for (let second = 0; second < 256; second += 1) decoder.take(second, first, second);
      decoder.take(300, ...END);
    }
  }
});

const u32 = (/** @type {number} */ value) => [value >>> 24, value >> 16 & 255, value >> 8 & 255, value & 255];
/** @param {string} type @param {number[][]} body @returns {number[]} */
const box = (type, ...body) => [...u32(body.flat().length + 8), ...Buffer.from(type), ...body.flat()];

/** @param {number[][]} samples @returns {Uint8Array} A fragment of video: one frame a second, the second one shown before the first. */
function fragment(samples) {
  const offsets = [2, 0, 1];
  const runs = samples.flatMap((sample, n) => [...u32(sample.length), ...u32(offsets[n % 3])]);
  const moof = (/** @type {number} */ size) => box("moof", box("traf",
    box("tfhd", u32(0x020008), u32(1), u32(1)), box("tfdt", u32(0), u32(100)),
    box("trun", u32(0xa01), u32(samples.length), u32(size + 8), runs)));
  return new Uint8Array([...moof(moof(0).length), ...box("mdat", samples.flat())]);
}

/** @param {number[]} head @param {number[][]} triples A message of captions, after the header of its unit. */
const message = (head, ...triples) => {
  const data = [0xb5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3, 0x40 | triples.length, 0xff, ...triples.flat(), 0xff];
  return [...u32(head.length + 2 + data.length), ...head, 4, data.length, ...data];
};
/** @param {string} codec @returns {import("../../web/media/boxes.js").InitTrack[]} */
const tracks = (codec) => [{ id: 1, kind: "video", codec, timescale: 1, width: 0, height: 0 }];

test("pairs of both fields are found in H.264 and HEVC, with the times of their frames", () => {
  for (const [codec, head] of /** @type {[string, number[]][]} */ ([["avc1.64001f", [6]], ["hvc1.1.6.L93.B0", [0x4e, 1]]])) {
    const slice = [...u32(3), 0x41, 1, 2];
    const samples = [
      [...message(head, [0xfc, 0x94, 0x20], [0xfd, 1, 2], [0xf8, 3, 4]), ...slice], slice, [...slice, ...message(head, [0xfc, 5, 6])]];
    assert.deepEqual(captionPairs(fragment(samples), tracks(codec)), [
      { decode: 100, time: 102, pairs: [[1, 0x94, 0x20], [2, 1, 2]] }, { decode: 101, time: 101, pairs: [] },
      { decode: 102, time: 103, pairs: [[1, 5, 6]] },
    ]);
  }
  assert.deepEqual(captionPairs(fragment([[1]]), tracks("av01.0.04M.08")), []);
});

test("no bytes make the reader fail", () => {
  const whole = fragment([message([6], [0xfc, 0x94, 0x20])]);
  for (let at = 0; at < whole.length; at += 1) {
    captionPairs(whole.slice(0, at), tracks("avc1.64001f"));
    for (const value of [0, 1, 0x7f, 0xff]) {
      const damaged = whole.slice();
      damaged[at] = value;
      captionPairs(damaged, tracks("avc1.64001f"));
    }
  }
});
