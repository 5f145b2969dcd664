import assert from "node:assert/strict";
import test from "node:test";

import { Adaptation } from "../../web/media/adaptation.js";
import { codecName, mimeType, unplayable } from "../../web/media/codecs.js";
import { failure, HTTPFailure, refusal } from "../../web/media/playback-result.js";
import { Throughput } from "../../web/media/throughput.js";

test("codecs have the names that people know", () => {
  const names = { "avc1.4d401f": "H.264", "hvc1.1.6.L93.B0": "HEVC", "mp4a.40.2": "AAC", "mp4a.40.5": "HE-AAC", "mp4a.6b": "MP3", opus: "Opus", xyz1: "xyz1" };
  for (const [codec, name] of Object.entries(names)) assert.equal(codecName(codec), name);
});

test("an MP4 with audio alone is audio", () => {
  assert.equal(mimeType(["mp4a.40.2"]), 'audio/mp4; codecs="mp4a.40.2"');
  assert.equal(mimeType(["avc1.4d401f", "mp4a.40.2"]), 'video/mp4; codecs="avc1.4d401f,mp4a.40.2"');
});

test("where there are no Media Source Extensions nothing can be played by them", () => {
  assert.deepEqual(unplayable(["avc1.4d401f"]), ["avc1.4d401f"]);
});

test("a throughput is told once there is enough to measure, and forgotten", () => {
  const throughput = new Throughput();
  throughput.add(10_000, 10, 0);
  assert.equal(throughput.rate(0), null);
  throughput.add(10_000, 10, 100);
  assert.equal(throughput.rate(100), 8_000_000);
  assert.equal(throughput.rate(5000), null);
});

/** @param {number} status @param {string} title @param {Record<string, string>} headers */
const answer = (status, title, headers = {}) => new Response(JSON.stringify({ title }), { status, headers });

test("a 503 means a full server, unless the stream has only nothing to show yet", async () => {
  assert.deepEqual(await refusal(answer(503, "Too many viewers", { "Retry-After": "5" })),
    { kind: "refused", status: 503, isFull: true, retryAfter: 5 });
  assert.equal((await HTTPFailure.of(answer(503, "Not yet"))).isFull, false);
  assert.equal((await HTTPFailure.of(answer(503, "Full", { "Retry-After": "99999" }))).retryAfter, 600);
});

test("a server that was asked too often, or too many, is left alone for as long as it says", async () => {
  const delays = await Promise.all([429, 503, 500, 404].map((status) => HTTPFailure.of(answer(status, "", { "Retry-After": "7" }))));
  assert.deepEqual(delays.map((failure) => failure.retryDelay), [7000, 7000, 0, 0]);
});

test("what went wrong becomes the result of playing", () => {
  assert.deepEqual(failure(new Error("cut off")), { kind: "lost", reason: "cut off" });
  assert.deepEqual(failure({ codecs: ["hvc1"] }), { kind: "unplayable", codecs: ["hvc1"] });
});

/** A window with two qualities; the publisher's is the present one. */
function windowOfTwo() {
  const chosen = /** @type {string[]} */ ([]);
  const qualities = [
    { name: "", url: "", codecs: [], bandwidth: 4_000_000, size: null },
    { name: "360p", url: "", codecs: [], bandwidth: 800_000, size: null },
  ];
  const window = {
    qualities, quality: "", isAutomatic: true, isReady: true, isStalled: false,
    async choose(/** @type {string} */ name) { chosen.push(name); window.quality = name; },
  };
  return { window: /** @type {any} */ (window), chosen };
}

const settled = () => new Promise((resume) => setImmediate(resume));

test("a connection that carries less than the quality needs makes it smaller", async () => {
  const { window, chosen } = windowOfTwo();
  const throughput = new Throughput();
  const adaptation = new Adaptation(window, throughput);
  const now = performance.now() + 10_000;
  throughput.add(100_000, 400, now);
  adaptation.tick(now);
  await settled();
  assert.deepEqual(chosen, ["360p"]);
});

test("a quality that the viewer has chosen stays", async () => {
  const { window, chosen } = windowOfTwo();
  window.isAutomatic = false;
  const throughput = new Throughput();
  const now = performance.now() + 10_000;
  throughput.add(100_000, 400, now);
  new Adaptation(window, throughput).tick(now);
  await settled();
  assert.deepEqual(chosen, []);
});
