// The rule of the live edge: a viewer who is late plays faster until it is where it was, and jumps only from afar. The clock and the
// video are the test's own.

import assert from "node:assert/strict";
import test from "node:test";
import { LiveEdge } from "../../web/engine/live-edge.js";

globalThis.HTMLMediaElement ??= /** @type {any} */ ({ HAVE_FUTURE_DATA: 3 });

const TICK = 50;
/** Milliseconds between arrivals of media, and the length of each. */
const PART = 200;

/** A live stream and a viewer of it, both by one clock, which goes on by ticks. */
class Viewer extends EventTarget {
  playbackRate = 1;
  paused = false;
  seeking = false;
  /** Seeks: jumps of the playhead. */
  jumps = 0;
  /** The highest rate since it was asked. */
  fastest = 1;
  now = 0;
  /** Seconds of media that are there. */
  end = 0;
  isStopped = false;
  #time = 0;
  #owed = 0;
  #isDry = true;

  constructor(context) {
    super();
    context.mock.method(performance, "now", () => this.now);
    context.mock.timers.enable({ apis: ["setTimeout"] });
    this.timers = context.mock.timers;
    this.edge = new LiveEdge(/** @type {any} */ (this));
  }

  get buffered() { return { length: this.end > 0 ? 1 : 0, start: () => 0, end: () => this.end }; }
  get readyState() { return this.end > this.#time ? 4 : 2; }
  get currentTime() { return this.#time; }
  set currentTime(time) {
    this.#time = time;
    this.jumps += 1;
  }

  /** Lets time pass. */
  pass(seconds) {
    for (const until = this.now + seconds * 1000; this.now < until;) {
      this.now += TICK;
      this.timers.tick(TICK);
      this.#owed += TICK;
      if (!this.isStopped && this.#owed >= PART) {
        // What was held up comes at once.
        this.end += this.#owed / 1000;
        this.#owed = 0;
        this.edge.arrived();
      }
      if (this.edge.isPlaced && !this.paused) this.#play();
      this.edge.tick();
      this.fastest = Math.max(this.fastest, this.playbackRate);
    }
  }

  #play() {
    const wanted = this.#time + TICK / 1000 * this.playbackRate;
    this.#time = Math.min(wanted, this.end);
    const isDry = wanted > this.end;
    if (isDry && !this.#isDry) this.dispatchEvent(new Event("waiting"));
    this.#isDry = isDry;
  }

  /** No media comes for this long. */
  stall(seconds) {
    this.isStopped = true;
    this.pass(seconds);
    this.isStopped = false;
  }

  /** The smallest distance to the edge within two seconds: what is left just before media arrives. */
  reserve() {
    let least = Infinity;
    for (let n = 0; n < 40; n += 1) {
      this.pass(TICK / 1000);
      least = Math.min(least, this.edge.behind);
    }
    return least;
  }
}

/** A viewer that has found its place. */
function settled(context) {
  const viewer = new Viewer(context);
  viewer.pass(10);
  viewer.jumps = 0;
  viewer.fastest = 1;
  assert.equal(viewer.playbackRate, 1);
  return viewer;
}

test("who plays undisturbed stays at the edge, at the usual speed", (context) => {
  const viewer = settled(context);
  viewer.pass(60);
  assert.deepEqual([viewer.fastest, viewer.jumps, viewer.edge.stalls], [1, 0, 0]);
  assert.ok(Math.abs(viewer.reserve() - viewer.edge.target) < 0.2, `${viewer.reserve()}`);
});

test("a stall is caught up by speed, and by no jump; the reserve is larger then", (context) => {
  const viewer = settled(context), before = viewer.edge.target;
  viewer.stall(1.8);
  viewer.pass(3);
  const late = viewer.edge.behind;
  assert.equal(viewer.edge.stalls, 1);
  assert.equal(viewer.playbackRate, 1.08);
  assert.ok(late > 1.4, `${late} s behind`);
  viewer.pass(45);
  assert.equal(viewer.playbackRate, 1);
  assert.ok(Math.abs(viewer.edge.target - before - 0.4) < 1e-9, `${before} s, then ${viewer.edge.target} s`);
  assert.ok(Math.abs(viewer.reserve() - viewer.edge.target) < 0.2, `${viewer.reserve()}`);
  assert.deepEqual([viewer.jumps, viewer.edge.stalls], [0, 1]);
});

test("the last of it is caught up more slowly", (context) => {
  const viewer = settled(context), seen = [];
  viewer.stall(1.8);
  for (let n = 0; n < 400; n += 1) {
    viewer.pass(0.1);
    if (seen.at(-1) !== viewer.playbackRate) seen.push(viewer.playbackRate);
  }
  assert.deepEqual(seen.slice(seen.indexOf(1.08)), [1.08, 1.03, 1]);
});

test("after a minute of calm the reserve shrinks again, and that is caught up as well", (context) => {
  const viewer = settled(context), before = viewer.edge.target;
  viewer.stall(1.8);
  viewer.pass(400);
  assert.ok(Math.abs(viewer.edge.target - before) < 1e-9, `${before} s, then ${viewer.edge.target} s`);
  assert.ok(Math.abs(viewer.reserve() - before) < 0.25, `${viewer.reserve()}`);
  assert.equal(viewer.jumps, 0);
});

test("who is late by many seconds jumps to the edge", (context) => {
  const viewer = settled(context);
  viewer.stall(10);
  viewer.pass(4);
  assert.equal(viewer.jumps, 1);
  assert.ok(viewer.edge.behind < 1.5, `${viewer.edge.behind}`);
});

test("a short pause is caught up, and after a long one playback goes on where it stood", (context) => {
  const viewer = settled(context);
  for (const [seconds, isFollowed, fastest] of [[1.5, true, 1.08], [20, false, 1]]) {
    viewer.paused = true;
    viewer.pass(seconds);
    viewer.paused = false;
    viewer.edge.resumed();
    viewer.fastest = 1;
    assert.equal(viewer.edge.isFollowed, isFollowed, `${seconds} s`);
    viewer.pass(40);
    assert.deepEqual([viewer.fastest, viewer.jumps], [fastest, 0], `${seconds} s`);
  }
  assert.ok(viewer.edge.behind > 19, `${viewer.edge.behind}`);
});

test("who has sought back is neither hurried nor moved", (context) => {
  const viewer = settled(context);
  viewer.pass(30);
  viewer.currentTime = viewer.end - 20;
  viewer.edge.stay("buffered");
  viewer.jumps = 0;
  viewer.pass(30);
  assert.deepEqual([viewer.fastest, viewer.jumps], [1, 0]);
  viewer.edge.jump();
  assert.ok(viewer.edge.isFollowed && viewer.edge.behind < 1, `${viewer.edge.behind}`);
});

test("a decoder that is late is not hurried", (context) => {
  const viewer = settled(context);
  viewer.paused = true;
  viewer.pass(1.5);
  viewer.paused = false;
  viewer.dispatchEvent(new Event("waiting"));
  viewer.fastest = 1;
  viewer.pass(14);
  assert.equal(viewer.fastest, 1);
  viewer.pass(5);
  assert.equal(viewer.fastest, 1.08);
});

test("a seek that stands right before media goes to it, which Firefox does not do", (context) => {
  for (const [seeking, moved] of [[true, true], [false, false]]) {
    const viewer = new EventTarget();
    Object.assign(viewer, {
      buffered: { length: 1, start: () => 3.067, end: () => 5 }, currentTime: 3.062, readyState: 1, seeking, paused: false,
      playbackRate: 1,
    });
    const edge = new LiveEdge(/** @type {any} */ (viewer));
    edge.stay("buffered");
    edge.tick();
    assert.equal(viewer.currentTime > 3.067, moved);
  }
});
