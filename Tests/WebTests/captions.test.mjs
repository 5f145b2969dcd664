import assert from "node:assert/strict";
import test from "node:test";

import { captionPairs } from "../../web/media/caption-data.js";
import { CaptionDecoder } from "../../web/media/caption-decoder.js";
import { DigitalCaptionDecoder } from "../../web/media/digital-caption-decoder.js";

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
      [...message(head, [0xfc, 0x94, 0x20], [0xfd, 1, 2], [0xf8, 3, 4], [0xff, 7, 8], [0xfe, 9, 10]), ...slice], slice,
      [...slice, ...message(head, [0xfc, 5, 6])]];
    assert.deepEqual(captionPairs(fragment(samples), tracks(codec)), [
      { decode: 100, time: 102, pairs: [[1, 0x94, 0x20], [2, 1, 2]], packets: [[true, 7, 8], [false, 9, 10]] },
      { decode: 101, time: 101, pairs: [], packets: [] }, { decode: 102, time: 103, pairs: [[1, 5, 6]], packets: [] },
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

let sequence = 0;
/** @param {number[]} data Of a service, at most 31 bytes. @param {number} service @returns {[boolean, number, number][]} */
function packet(data, service = 1) {
  const body = [service << 5 | data.length, ...data];
  if (body.length % 2 === 0) body.push(0);
  const whole = [(sequence & 3) << 6 | (body.length + 1) / 2, ...body];
  sequence += 1;
  return Array.from({ length: whole.length / 2 }, (_, n) => [n === 0, whole[2 * n], whole[2 * n + 1]]);
}
/** @param {number} rows @param {boolean} isVisible Window 0, its lower middle at 90 % of the height. */
const define = (rows, isVisible = false) => [0x98, isVisible ? 0x38 : 0x18, 0x80 | 90, 50, 0x70 | rows - 1, 31, 0x11];
const DISPLAY = [0x89, 1], HIDE = [0x8a, 1];
/** @param {string} text */
const codes = (text) => [...text].map((letter) => letter.charCodeAt(0));

/** @param {[boolean, number, number][][]} frames @param {number} rate @returns {[number, string[]][]} Frames, and what is shown. */
function digital(frames, rate = 30) {
  /** @type {[number, string[]][]} */
  const found = [];
  const decoder = new DigitalCaptionDecoder((time, lines) => found.push([Math.round(time * rate), lines.map((l) => `${l.row} ${l.text}`)]));
  frames.forEach((pairs, n) => decoder.take(n / rate, pairs));
  return found;
}

test("a window of CEA-708 is shown as a whole, with letters of all groups, and hidden", () => {
  const found = digital([
    packet([...define(2), ...codes("Caf\u00e9 "), 0x7f]), packet([0x0d, 0x10, 0x33, ...codes("two"), 0x10, 0x34, 0x10, 0xa0]), packet(DISPLAY), [],
    packet(HIDE)]);
  assert.deepEqual(found, [[2, ["13 Caf\u00e9 \u266a", "14 \u201ctwo\u201d_"]], [4, []]]);
});

test("rows of CEA-708 roll up, letters are painted, rows and letters erased", () => {
  const rolled = digital([packet([...define(2, true), ...codes("one")]), packet([0x0d, ...codes("two")]), packet([0x0d, ...codes("three")]), ...Array(9).fill([])]);
  assert.deepEqual(rolled.at(-1)?.[1], ["13 two", "14 three"]);
  const painted = digital([packet([...define(1, true), ...codes("a")]), ...[..."bcdefghij"].map((letter) => packet(codes(letter))), ...Array(9).fill([])]);
  assert.deepEqual(painted.at(-1)?.[1], ["14 abcdefghij"]);
  assert.ok(painted.length < 5, "not with each letter");
  assert.deepEqual(digital([packet([...define(1, true), ...codes("abc"), 0x08, ...codes("d")])])[0][1], ["14 abd"]);
  assert.deepEqual(digital([packet([...define(1, true), ...codes("abc"), 0x0e, ...codes("d")])])[0][1], ["14 d"]);
  assert.deepEqual(digital([packet([...define(1, true), ...codes("abc"), 0x0c, ...codes("e")])])[0][1], ["14 e"]);
  assert.deepEqual(digital([packet([...define(2, true), 0x92, 1, 3, ...codes("x")])])[0][1], ["14 x"]);
});

test("several windows stand together, each can be toggled and deleted, and a reset takes all", () => {
  const upper = [0x99, 0x38, 0x80 | 10, 50, 0x10, 31, 0x11];
  const frames = [packet([...define(1, true), ...codes("low")]), packet([...upper, ...codes("high")]), packet([0x80, ...codes("er")]),
    packet([0x8b, 2]), packet([0x8b, 2]), packet([0x8c, 1]), packet([0x8f])];
  assert.deepEqual(digital(frames, 1).map(([, lines]) => lines), [
    ["14 low"], ["3 high", "14 low"], ["3 high", "14 lower"], ["14 lower"], ["3 high", "14 lower"], ["3 high"], []]);
});

test("a delay holds what follows it, until its end or a command", () => {
  assert.deepEqual(digital([packet([...define(1, true), ...codes("one")]), packet([0x8d, 10, ...HIDE]), ...Array(40).fill([])]), [[0, ["14 one"]], [31, []]]);
  assert.deepEqual(digital([packet([...define(1, true), ...codes("one")]), packet([0x8d, 90, ...HIDE]), [], packet([0x8e])]), [[0, ["14 one"]], [3, []]]);
});

test("other services, packets that are cut off and missing ones show nothing of theirs", () => {
  assert.deepEqual(digital([packet([...define(1, true), ...codes("two")], 2)]), []);
  const whole = packet([...define(1, true), ...codes("one")]);
  assert.deepEqual(digital([whole.slice(1)]), []);
  assert.deepEqual(digital([whole.slice(0, 3), packet([...define(1, true), ...codes("next")])])[0][1], ["14 next"]);
  // The first half of a command, and the packet with the other one is missing.
  const first = packet([...define(1, true), ...codes("one"), 0x97, 1]);
  packet([2, 3, 4]);
  assert.deepEqual(digital([first, packet(codes("!"))], 1).at(-1)?.[1], ["14 one!"]);
});

test("no bytes make the decoder of CEA-708 fail, or show more than a screen", () => {
  let seed = 7;
  const random = () => { seed = seed * 1103515245 + 12345 & 0x7fffffff; return seed >> 8 & 255; };
  for (let round = 0; round < 200; round += 1) {
    const decoder = new DigitalCaptionDecoder((_, lines) => assert.ok(lines.every((l) => l.row >= 1 && l.row <= 15 && l.text.length <= 42)));
    for (let n = 0; n < 100; n += 1) {
      const data = Array.from({ length: random() & 31 }, random);
      decoder.take(n, n % 3 === 0 ? packet([...define(15, true), ...data].slice(0, 31)) : packet(data));
      decoder.take(n, [[(n & 1) === 0, random(), random()], [false, random(), random()]]);
    }
  }
});
