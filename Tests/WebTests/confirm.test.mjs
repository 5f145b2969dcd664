// Buttons that ask once more: what counts as a second click, and for how long they ask.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const announcer = { textContent: "" };
const PAGE = {
  navigator: { languages: ["en"] }, document: { getElementById: () => announcer },
  fetch: async (address) => new Response(readFileSync(address)),
};
for (const [name, value] of Object.entries(PAGE)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
const { confirmButton } = await import("../../web/ui/confirm-button.js");

/** What a person needs to read the question, and a mouse's double click. */
const READ = 601, SOON = 200;

/** A button in a page whose clock passes at once. `acted`: how often it did what it is for. */
function asking(context, needsConfirmation = () => true) {
  let now = 1000;
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(performance, "now", () => now);
  const button = Object.assign(new EventTarget(), {
    textContent: "Stop", lastElementChild: null, dataset: /** @type {Record<string, string>} */ ({}), getAttribute: () => "Stop demo",
  });
  const made = { button, acted: 0, word: (/** @type {string} */ text) => control.setWord(text) };
  const control = confirmButton(/** @type {any} */ (button), () => { made.acted += 1; }, needsConfirmation);
  return Object.assign(made, {
    /** @param {number} detail Which click of a double click it is; 0 by the keyboard. */
    click(detail = 1) {
      const event = Object.assign(new Event("click"), { detail });
      Object.defineProperty(event, "timeStamp", { value: now });
      button.dispatchEvent(event);
    },
    /** @param {number} milliseconds */
    pass(milliseconds) { now += milliseconds; context.mock.timers.tick(milliseconds); },
  });
}

test("the first click asks, aloud as well, and a second one that could be meant acts", (context) => {
  const made = asking(context);
  made.click();
  assert.deepEqual([made.button.textContent, made.acted], ["Really?", 0]);
  assert.match(announcer.textContent, /Stop demo.*press again/);
  made.pass(READ);
  made.click();
  assert.deepEqual([made.button.textContent, made.acted], ["Stop", 1]);
});

test("without a second click it asks for four seconds, and begins anew", (context) => {
  const made = asking(context);
  made.click();
  made.pass(3999);
  assert.equal(made.button.textContent, "Really?");
  made.pass(1);
  assert.equal(made.button.textContent, "Stop");
  made.click();
  assert.deepEqual([made.button.textContent, made.acted], ["Really?", 0]);
});

test("a double click, two taps and a held key act on nothing, and end with the question", (context) => {
  const ways = { "double click": [1, 2], "two taps": [1, 1], "held key": Array(30).fill(0) };
  for (const [name, details] of Object.entries(ways)) {
    const made = asking(context);
    for (const detail of details) {
      made.click(detail);
      made.pass(name === "held key" ? 50 : SOON);
      assert.equal(made.button.textContent, "Really?", name);
    }
    assert.equal(made.acted, 0, name);
    made.pass(4000);
    assert.equal(made.button.textContent, "Stop", name);
    context.mock.timers.reset();
    context.mock.restoreAll();
  }
});

test("the second half of a slow double click does not count", (context) => {
  const made = asking(context);
  made.click(1);
  made.pass(READ);
  made.click(2);
  assert.deepEqual([made.button.textContent, made.acted], ["Really?", 0]);
});

test("where nothing is lost it does not ask, also if that changes meanwhile", (context) => {
  let needs = false;
  const made = asking(context, () => needs);
  made.click();
  assert.equal(made.acted, 1);
  needs = true;
  made.click();
  assert.equal(made.button.textContent, "Really?");
  made.word("Preview");
  assert.equal(made.button.textContent, "Really?");
  needs = false;
  made.word("Preview");
  assert.equal(made.button.textContent, "Preview");
});
