// The sentence for each way in which a browser gives no camera, microphone or screen.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const GLOBALS = {
  navigator: { languages: ["en"], mediaDevices: {} }, location: { port: "8080", pathname: "/publish/cam" }, isSecureContext: true,
  RTCPeerConnection: class {}, fetch: async (address) => new Response(readFileSync(address)),
};
for (const [name, value] of Object.entries(GLOBALS)) Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
const { deviceProblem, pageProblem, screenProblem } = await import("../../web/publish/problems.js");
const { openCamera } = await import("../../web/publish/devices.js");
const { settingsFrom } = await import("../../web/media/publish-settings.js");

const exception = (name) => new DOMException("words of the browser", name);

test("each exception has a plain sentence that says what to do", () => {
  const sentences = {
    NotAllowedError: /does not let this page use camera.*Allow both/, SecurityError: /forbids cameras.*settings/,
    NotFoundError: /No camera or no microphone was found.*Plug one in/, NotReadableError: /Another program uses.*Close it/,
    OverconstrainedError: /cannot do what is wanted.*another quality/, AbortError: /could not be started.*try again/,
    InvalidStateError: /could not ask.*once more/,
  };
  for (const [name, sentence] of Object.entries(sentences)) assert.match(deviceProblem(exception(name)), sentence);
  assert.equal(new Set(Object.keys(sentences).map((name) => deviceProblem(exception(name)))).size, 7);
});

test("what a browser throws beside those is named", () => {
  assert.match(deviceProblem(new TypeError("x")), /could not be opened \(TypeError\)/);
  assert.match(deviceProblem("x"), /could not be opened \(\?\)/);
  assert.match(deviceProblem(exception("constructor")), /\(constructor\)/);
});

test("a screen that was not allowed is no camera", () => {
  for (const name of ["NotAllowedError", "AbortError"]) assert.match(screenProblem(exception(name)), /screen is not shared/);
  assert.equal(screenProblem(exception("NotReadableError")), deviceProblem(exception("NotReadableError")));
});

test("a page that can have no camera says why", () => {
  assert.equal(pageProblem(), null);
  globalThis.isSecureContext = false;
  assert.match(pageProblem(), /HTTPS.*--tls-cert.*http:\/\/localhost:8080\/publish\/cam/);
  globalThis.location.port = "";
  assert.match(pageProblem(), /http:\/\/localhost\/publish\/cam/);
  globalThis.isSecureContext = true;
  globalThis.navigator.mediaDevices = undefined;
  assert.match(pageProblem(), /gives no cameras/);
  delete globalThis.RTCPeerConnection;
  assert.match(pageProblem(), /has no WebRTC/);
});

test("a camera that is gone is followed by the next, one in use is told", async () => {
  const asked = [];
  /** @param {string[]} outcomes Of each request: the name of an exception, or a label. */
  const open = async (...outcomes) => {
    asked.length = 0;
    globalThis.navigator.mediaDevices = {
      async getUserMedia({ video }) {
        asked.push(video.deviceId?.exact ?? video.facingMode?.ideal ?? "any");
        const outcome = outcomes.shift();
        if (outcome.endsWith("Error")) throw exception(outcome);
        return { getVideoTracks: () => [outcome] };
      },
    };
    return openCamera(settingsFrom({ camera: "a" })).catch(({ name }) => name);
  };
  assert.equal(await open("OverconstrainedError", "NotFoundError", "third"), "third");
  assert.deepEqual(asked, ["a", "user", "any"]);
  assert.equal(await open("NotReadableError", "second"), "NotReadableError");
  assert.equal(await open("NotFoundError", "NotFoundError", "NotFoundError"), "NotFoundError");
});
