// The live pictures of the home page: how often they are asked for, and that a hidden page asks for none.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.createImageBitmap = /** @type {any} */ (async () => ({ width: 640, height: 360, close() {} }));
const { LivePictures } = await import("../../web/pages/live-pictures.js");

const settle = () => new Promise((resume) => setImmediate(resume));
const picture = (/** @type {string} */ name) => /** @type {any} */ (
  { canvas: { hidden: true, getContext: () => ({ drawImage() {} }) }, name, at: -Infinity, tag: null });

/** Pictures in a page whose clock passes at once. `asked`: streams and when they were asked for. */
function page(context, answer = () => new Response("")) {
  const asked = /** @type {[string, number][]} */ ([]);
  let now = 0;
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(performance, "now", () => now);
  context.mock.method(globalThis, "fetch", async (/** @type {string} */ url) => {
    asked.push([url.split("/")[2], now]);
    return answer();
  });
  const document = Object.assign(new EventTarget(), { hidden: false });
  globalThis.document = /** @type {any} */ (document);
  const pass = async (/** @type {number} */ milliseconds) => {
    for (let at = 0; at < milliseconds; at += 50) {
      for (let turn = 0; turn < 5; turn += 1) await settle();
      now += 50;
      context.mock.timers.tick(50);
    }
    for (let turn = 0; turn < 5; turn += 1) await settle();
  };
  const hide = (/** @type {boolean} */ hidden) => {
    document.hidden = hidden;
    document.dispatchEvent(new Event("visibilitychange"));
  };
  return { asked, pass, hide, pictures: new LivePictures(() => true) };
}

test("a picture is asked for at once, and again after five seconds", async (context) => {
  const { asked, pass, pictures } = page(context);
  const shown = picture("cam");
  pictures.show(/** @type {any} */ ({}), shown);
  await pass(16_000);
  assert.deepEqual(asked.map(([name, at]) => [name, Math.floor(at / 1000)]), [["cam", 0], ["cam", 5], ["cam", 10], ["cam", 15]]);
  assert.deepEqual([shown.canvas.hidden, shown.canvas.width, shown.canvas.height], [false, 320, 180]);
});

test("first pictures of several streams come soon, one after another", async (context) => {
  const { asked, pass, pictures } = page(context);
  for (const name of ["one", "two", "three"]) pictures.show(/** @type {any} */ ({ name }), picture(name));
  await pass(1000);
  assert.deepEqual(asked.map(([name]) => name), ["one", "two", "three"]);
});

test("a hidden page asks for none, and for one as soon as it is seen", async (context) => {
  const { asked, pass, hide, pictures } = page(context);
  pictures.show(/** @type {any} */ ({}), picture("cam"));
  await pass(1000);
  hide(true);
  await pass(120_000);
  assert.equal(asked.length, 1);
  hide(false);
  await pass(50);
  assert.equal(asked.length, 2);
});

test("a card that is out of view is asked for no more", async (context) => {
  const { asked, pass, pictures } = page(context);
  const card = /** @type {any} */ ({});
  pictures.show(card, picture("cam"));
  await pass(1000);
  pictures.hide(card);
  await pass(60_000);
  assert.equal(asked.length, 1);
});

test("a stream whose picture cannot be had rests for half a minute", async (context) => {
  const { asked, pass, pictures } = page(context, () => new Response("", { status: 404 }));
  pictures.show(/** @type {any} */ ({}), picture("cam"));
  await pass(60_000);
  assert.deepEqual(asked.map(([, at]) => Math.floor(at / 1000)), [0, 35]);
});
