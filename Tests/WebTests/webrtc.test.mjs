// Sessions of WebRTC: the order in which a viewer's connection is made, and why the server has ended one.

import assert from "node:assert/strict";
import test from "node:test";
import { WebRTCEngine } from "../../web/engine/webrtc-engine.js";
import { useServers } from "../../web/media/ice-servers.js";
import { endingOf } from "../../web/media/session-ending.js";

const SESSION = "http://server.example/whep/cam/1";

/** @param {number} status @param {unknown} body */
const problem = (status, body) => async () => new Response(JSON.stringify(body), { status });

/** Answers requests in place of a server, until the test ends. */
function serve(context, answer) { context.mock.method(globalThis, "fetch", answer); }

test("a session that was ended tells why, for a while", async (context) => {
  const asked = [];
  serve(context, async (address, request) => {
    asked.push([address, request.method ?? "GET", request.headers.Authorization]);
    return problem(410, { detail: "The viewer cannot keep up." })();
  });
  assert.equal(await endingOf(SESSION, { Authorization: "Bearer a" }), "The viewer cannot keep up");
  assert.deepEqual(asked, [[SESSION, "GET", "Bearer a"]]);
});

test("what is no reason is passed over", async (context) => {
  let answer = problem(404, {});
  serve(context, () => answer());
  for (const [status, body] of [[404, { detail: "There is none." }], [405, { detail: "PATCH." }], [200, { detail: "x" }], [410, {}],
    [410, { detail: 7 }], [410, null], [503, { detail: "full" }]]) {
    answer = problem(status, body);
    assert.equal(await endingOf(SESSION), "", `${status} ${JSON.stringify(body)}`);
  }
  answer = async () => new Response("<p>gone</p>", { status: 410 });
  assert.equal(await endingOf(SESSION), "");
  answer = async () => { throw new TypeError("no network"); };
  assert.equal(await endingOf(SESSION), "");
  for (const status of [401, 403]) {
    answer = problem(status, { detail: "The token has expired." });
    assert.equal(await endingOf(SESSION), "The token has expired");
  }
});

test("an address of an ICE server that a browser does not take changes nothing", (context) => {
  const warned = context.mock.method(console, "warn", () => {});
  const peer = { getConfiguration: () => ({}), setConfiguration() { throw new SyntaxError("no such scheme"); } };
  useServers(peer, [{ urls: "stun:a" }]);
  assert.equal(warned.mock.callCount(), 1);
  useServers({ setConfiguration() { assert.fail("there is none"); } }, []);
});

test("a viewer has ICE servers before it looks for its addresses, and hears why the server ended its session", async (context) => {
  const steps = [];
  class Peer {
    connectionState = "connected";
    addEventListener() {}
    addTransceiver() {}
    async createOffer() { return { type: "offer", sdp: "offered" }; }
    getConfiguration() { return { bundlePolicy: "balanced" }; }
    setConfiguration(configuration) { steps.push(["servers", configuration]); }
    async setLocalDescription(description) { steps.push(["local", description.sdp]); }
    async setRemoteDescription(description) { steps.push(["remote", description.sdp]); }
    getReceivers() { return [{ transport: { state: "closed" } }]; }
    close() { steps.push(["close"]); }
  }
  Object.assign(globalThis, { RTCPeerConnection: Peer, MediaStream: class {} });
  context.after(() => { delete globalThis.RTCPeerConnection; delete globalThis.MediaStream; });
  serve(context, async (address, { method = "GET", body } = {}) => {
    steps.push([method, address, body]);
    if (method === "GET") return problem(410, { detail: "It cannot keep up." })();
    if (method === "DELETE") return problem(410, {})();
    const response = new Response("answered", { status: 201, headers: { Link: '<stun:stun.example.net>; rel="ice-server"', Location: SESSION } });
    return Object.defineProperty(response, "url", { value: address });
  });
  const engine = new WebRTCEngine({}, "http://server.example/whep/cam", { plays: true }, () => {});
  const result = await engine.play("", new AbortController().signal);
  assert.deepEqual(result, { kind: "lost", reason: "the server ended the session", ending: "It cannot keep up" });
  assert.deepEqual(steps, [
    ["POST", "http://server.example/whep/cam", "offered"],
    ["servers", { bundlePolicy: "balanced", iceServers: [{ urls: "stun:stun.example.net" }] }],
    ["local", "offered"], ["remote", "answered"], ["GET", SESSION, undefined], ["DELETE", SESSION, undefined], ["close"],
  ]);
});
