import assert from "node:assert/strict";
import test from "node:test";

import { Rendition } from "../../web/media/rendition.js";
import { Timeline } from "../../web/media/timeline.js";

/** Segments of 2 s, from a number on. Their dates count from 1970. */
const listed = (/** @type {number} */ first, /** @type {number} */ count) => Array.from({ length: count }, (_, n) => ({
  sequence: first + n, discontinuity: 0, url: `${first + n}.m4s`, range: null, duration: 2, date: (first + n) * 2000,
  map: { url: "init.mp4", range: null }, gap: false, complete: true, parts: [],
}));

test("a later playlist goes on where the former one ended", () => {
  const timeline = new Timeline();
  timeline.update(listed(10, 3));
  assert.deepEqual([timeline.start, timeline.end], [0, 6]);
  timeline.update(listed(12, 3));
  assert.deepEqual([timeline.start, timeline.end], [4, 10]);
});

test("segments that were never seen take as long as their dates tell", () => {
  const timeline = new Timeline();
  timeline.update(listed(10, 2));
  timeline.update(listed(20, 2));
  assert.equal(timeline.start, 20);
});

test("the first media time that is read moves the axis, once", () => {
  const timeline = new Timeline();
  timeline.update(listed(10, 3));
  timeline.anchor(11, 102);
  timeline.anchor(11, 500);
  assert.deepEqual([timeline.start, timeline.end], [100, 106]);
  assert.equal(timeline.at(103)?.sequence, 11);
  assert.equal(timeline.dateAt(103), 23000);
});

test("segments that the playlist no longer lists stay for as long as the server has them", () => {
  const timeline = new Timeline();
  timeline.memory = 4;
  timeline.update(listed(10, 3));
  timeline.update(listed(12, 2));
  assert.deepEqual(timeline.segments.map((s) => [s.sequence, s.start]), [[11, 2], [12, 4], [13, 6]]);
});

test("what came before the list is put before it if nothing is missing between", () => {
  const timeline = new Timeline();
  timeline.update(listed(12, 2));
  timeline.prepend(listed(9, 2));
  assert.equal(timeline.segments.length, 2);
  timeline.prepend(listed(9, 4));
  assert.deepEqual(timeline.segments.map((s) => s.sequence), [9, 10, 11, 12, 13]);
  assert.equal(timeline.start, -6);
});

test("the axis goes on over reloads, and over gaps by their dates", () => {
  const line = new Timeline();
  const segment = (sequence, duration, date) => ({ ...listed(sequence, 1)[0], duration, date });
  const starts = () => line.segments.map((s) => s.start);
  line.update([segment(5, 2, 1000), segment(6, 2, 3000), segment(7, 0.4, 5000)]);
  line.anchor(6, 102.5);
  assert.deepEqual([starts(), line.isAnchored], [[100.5, 102.5, 104.5], true]);
  line.update([segment(6, 2, 3000), segment(7, 2, 5000), segment(8, 2, 7000)]);
  assert.deepEqual([starts(), line.end, line.dateAt(105), line.at(104.6)?.sequence], [[102.5, 104.5, 106.5], 108.5, 5500, 7]);
  line.anchor(6, 0);
  assert.equal(line.start, 102.5);
  line.update([segment(20, 2, 31000)]);
  assert.deepEqual([line.start, line.dateAt(line.start ?? 0)], [130.5, 31000]);
});

test("a playlist has its place when its media have told of it, or there are none that can be read", () => {
  const [gap, whole, parts] = listed(5, 3);
  gap.gap = true;
  parts.complete = false;
  const rendition = new Rendition("main", "https://example.org/live/s/index.m3u8", 0);
  assert.equal(rendition.isPlaced, false);
  const told = (segments) => {
    rendition.timeline.update(segments);
    return [rendition.isPlaced, rendition.timeline.readable?.sequence ?? null];
  };
  assert.deepEqual(told([gap]), [true, null], "only a gap");
  assert.deepEqual(told([gap, { ...parts, sequence: 6 }]), [true, null], "a segment is begun");
  assert.deepEqual(told([gap, { ...parts, sequence: 6, parts: [{ gap: false }] }]), [false, 6], "it has a part");
  assert.deepEqual(told([gap, whole, { ...parts, parts: [{ gap: false }] }]), [false, 6], "a whole one is beside it");
  rendition.timeline.anchor(6, 90);
  assert.deepEqual(told([gap, whole, parts]), [true, 6], "its beginning was read");
});

test("a segment that a rendition does not list yet is expected to be as the newest one", () => {
  const audio = new Rendition("audio", "https://weir.test/audio.m3u8", 0);
  assert.equal(audio.hasMedia(10), false, "nothing is listed");
  audio.timeline.update(listed(10, 2));
  assert.deepEqual([8, 9, 11, 12].map((number) => audio.hasMedia(number)), [false, true, true, true]);
  audio.isReported = false;
  assert.deepEqual([11, 12].map((number) => audio.hasMedia(number)), [true, false]);
  audio.isReported = null;
  audio.timeline.update([...listed(10, 2), { ...listed(12, 1)[0], gap: true }]);
  assert.deepEqual([11, 12, 13].map((number) => audio.hasMedia(number)), [true, false, false]);
});
