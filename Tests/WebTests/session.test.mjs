// A viewer's session without a browser: when it asks the server again. The clock of the tests passes at once.

import assert from "node:assert/strict";
import test from "node:test";

/** What a page has, as far as a session without media uses it. */
const PAGE = {
  document: Object.assign(new EventTarget(), { hidden: false }), HTMLMediaElement: { HAVE_CURRENT_DATA: 2 },
  location: new URL("http://server.example/other/nobody"), addEventListener() {}, sessionStorage: { getItem: () => null }, localStorage: { getItem: () => null },
};
for (const [name, value] of Object.entries(PAGE)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
const { WatchSession } = await import("../../web/engine/session.js");

const video = () => Object.assign(new EventTarget(), { readyState: 0, paused: true, ended: false, currentTime: 0, textTracks: [] });

/** Lets promises go on, as far as they go without another timer. */
const settle = () => new Promise((resume) => setImmediate(resume));

/**
 * A session with a stream that is not there, or of which the server says `answer`.
 * @returns {{session: WatchSession, asked: number[], goals: string[], pass: (milliseconds: number) => Promise<void>}} `asked`: when it
 *   asked the server; `goals`: what for.
 */
function waiting(context, answer = () => new Response(null, { status: 204 })) {
  const asked = /** @type {number[]} */ ([]), goals = /** @type {string[]} */ ([]);
  let now = 0;
  context.mock.timers.enable({ apis: ["setTimeout", "setInterval"] });
  context.mock.method(performance, "now", () => now);
  context.mock.method(globalThis, "fetch", async (_, { headers }) => {
    asked.push(now);
    goals.push(headers["Weir-Until"]);
    return answer();
  });
  const session = new WatchSession(/** @type {any} */ (video()), "nobody", "mse", () => {}, { root: "http://server.example" });
  session.start();
  const pass = async (milliseconds) => {
    for (let at = 0; at < milliseconds; at += 50) {
      await settle();
      now += 50;
      context.mock.timers.tick(50);
    }
    await settle();
  };
  return { session, asked, goals, pass };
}

/** @param {number[]} times @returns {number[]} The pauses between them. */
const pauses = (times) => times.slice(1).map((time, n) => time - times[n]);

test("a page that waits for a stream asks once a second for two minutes, and then seldom", async (context) => {
  const { session, asked, pass } = waiting(context);
  await pass(119_000);
  assert.deepEqual(new Set(pauses(asked)), new Set([1000]));
  await pass(2000);
  asked.length = 0;
  await pass(20_000);
  assert.deepEqual(new Set(pauses(asked)), new Set([2000]));
  session.stop();
});

test("a page that waits has its requests held while it asks often, and is answered at once before and after that", async (context) => {
  const { session, goals, pass } = waiting(context);
  await pass(119_000);
  assert.equal(goals[0], "now");
  assert.deepEqual(new Set(goals.slice(1)), new Set(["starting"]));
  goals.length = 0;
  await pass(20_000);
  assert.deepEqual(new Set(goals.slice(3)), new Set(["now"]));
  session.stop();
});

test("a stream without tracks yet is awaited until it has some: its first frames come before its playlists", async (context) => {
  const { session, goals, pass } = waiting(context, () => new Response(JSON.stringify({ state: "starting", tracks: [] })));
  await pass(5000);
  assert.deepEqual(new Set(goals.slice(1)), new Set(["starting"]));
  session.stop();
});

test("a hidden page asks every 15 seconds, and at once when it is seen again", async (context) => {
  const { session, asked, pass } = waiting(context);
  await pass(1000);
  PAGE.document.hidden = true;
  await pass(400);
  asked.length = 0;
  await pass(46_000);
  assert.deepEqual(new Set(pauses(asked)), new Set([15_000]));
  const before = asked.length;
  PAGE.document.hidden = false;
  PAGE.document.dispatchEvent(new Event("visibilitychange"));
  assert.ok(asked.length > before);
  session.stop();
});

test("a pause that is over is forgotten", async (context) => {
  const { session, asked, pass } = waiting(context);
  await pass(30_000);
  assert.ok(asked.length > 25, String(asked.length));
  const clear = context.mock.method(globalThis, "clearTimeout");
  await session.retry();
  assert.ok(clear.mock.callCount() < 5, `one attempt wakes ${clear.mock.callCount()} timers of ${asked.length}`);
  session.stop();
});

test("a page that is left asks no more", async (context) => {
  const { session, asked, pass } = waiting(context);
  await pass(1000);
  session.stop();
  const before = asked.length;
  await pass(60_000);
  assert.equal(asked.length, before);
});
