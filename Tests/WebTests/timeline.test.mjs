import assert from "node:assert/strict";
import test from "node:test";

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
