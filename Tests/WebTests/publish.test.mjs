// Publishing: settings, figures, the way back after a lost connection, and the bounded copy.

import assert from "node:assert/strict";
import test from "node:test";
import { levelOf, SILENT_DECIBELS } from "../../web/media/audio-level.js";
import { CopyParts } from "../../web/media/copy-parts.js";
import { iceServersOf } from "../../web/media/ice-servers.js";
import { CUSTOM, microphoneConstraints, NONE, otherCameras, PRESETS, settingsFrom, within } from "../../web/media/publish-settings.js";
import { fateOf, outcomeOf, ReconnectPlan } from "../../web/media/reconnect-plan.js";
import { between, heardOf, sentOf, ServerView, Slowness } from "../../web/media/sending-figures.js";
import { restarted, restartFragment } from "../../web/media/session-description.js";

test("what was remembered is taken as far as it makes sense", () => {
  assert.deepEqual(settingsFrom(null), settingsFrom({}));
  assert.equal(settingsFrom("x").preset, "720p30");
  assert.equal(settingsFrom({ preset: "constructor" }).preset, "720p30");
  assert.deepEqual(settingsFrom({ preset: "1080p60", width: 1 }), { ...settingsFrom(null), preset: "1080p60", ...PRESETS["1080p60"] });
  const own = settingsFrom({ preset: CUSTOM, width: 320, height: 100_000, frameRate: "25", bitrate: null, codec: "VP8", camera: 7, voice: false });
  assert.deepEqual([own.width, own.height, own.frameRate, own.bitrate], [320, 720, 25, 2_500_000]);
  assert.deepEqual([own.codec, own.camera, own.voice, own.copy], ["", "", false, true]);
  assert.equal(settingsFrom({ microphone: "x".repeat(256) }).microphone.length, 256);
  assert.equal(settingsFrom({ microphone: "x".repeat(257) }).microphone, "");
});

test("figures are taken up to their bounds", () => {
  assert.deepEqual([1, 60, 0, 61, "", "x", null, Infinity].map((value) => within("frameRate", value)), [1, 60, null, null, null, null, null, null]);
  assert.deepEqual([99_999, 100_000, 20_000_000, 20_000_001].map((value) => within("bitrate", value)), [null, 100_000, 20_000_000, null]);
});

test("a microphone that is not named is any, and music is left as it is", () => {
  assert.equal("deviceId" in microphoneConstraints(settingsFrom({ microphone: NONE })), false);
  const music = microphoneConstraints(settingsFrom({ microphone: "a", voice: false }));
  assert.deepEqual(music, {
    deviceId: { exact: "a" }, echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: { ideal: 2 } });
});

test("the other camera is that of the opposite side, or the next of the list", () => {
  const cameras = [{ deviceId: "a" }, { deviceId: "b" }, { deviceId: "c" }];
  assert.deepEqual(otherCameras(cameras, { deviceId: "a", facingMode: "user" }), [
    { facingMode: { exact: "environment" } }, { deviceId: { exact: "b" } }]);
  assert.deepEqual(otherCameras(cameras, { deviceId: "c" }), [{ deviceId: { exact: "a" } }]);
  assert.deepEqual(otherCameras(cameras, {}), [{ deviceId: { exact: "a" } }]);
  assert.deepEqual(otherCameras([{ deviceId: "a" }], { deviceId: "a" }), []);
  assert.deepEqual(otherCameras([], { deviceId: "a" }), []);
});

test("the loudest channel is the level, and one that is cut off is told", () => {
  const level = (...peaks) => levelOf(peaks.map((peak) => Float32Array.of(0, peak / 2, peak)));
  assert.deepEqual(level(), { decibels: SILENT_DECIBELS, isClipping: false });
  assert.deepEqual(level(0, 0), { decibels: SILENT_DECIBELS, isClipping: false });
  assert.deepEqual(level(0, -1), { decibels: 0, isClipping: true });
  assert.deepEqual([0.984, 0.986].map((peak) => level(peak, 0).isClipping), [false, true]);
  assert.deepEqual([level(0.1, 0).decibels, level(0.1, 0.1, 0.05).decibels].map(Math.round), [-20, -20]);
});

const report = (changes = {}) => [
  { type: "outbound-rtp", kind: "audio", bytesSent: 100, packetsSent: 10 },
  { type: "outbound-rtp", kind: "video", bytesSent: 900, packetsSent: 90, framesSent: 30, frameWidth: 640, frameHeight: 360, qualityLimitationReason: "cpu", ...changes },
  { type: "remote-inbound-rtp", kind: "video", packetsLost: 3, roundTripTime: 0.5 },
  { type: "candidate-pair", nominated: true, currentRoundTripTime: 0.02 },
  { type: "candidate-pair", nominated: false, currentRoundTripTime: 9 },
  { type: "codec" },
];

test("the browser's statistics become what is shown", () => {
  const before = sentOf(report(), 1000);
  assert.deepEqual(before, { at: 1000, bytes: 1000, frames: 30, packets: 100, lost: 3, width: 640, height: 360, roundTrip: 0.02, limited: "cpu" });
  const now = sentOf(report({ bytesSent: 125_900, packetsSent: 190, framesSent: 90 }), 3000);
  assert.deepEqual(between(before, { ...now, lost: 8 }), { bitrate: 500_000, frameRate: 30, loss: 0.05 });
  assert.equal(between(now, now), null);
  assert.equal(between(now, { ...before, at: 9000 }), null, "another connection counts from zero");
  assert.deepEqual(sentOf([], 5).roundTrip, null);
  assert.equal(heardOf([{ type: "candidate-pair", bytesReceived: 5 }, { type: "candidate-pair" }, { type: "transport", bytesReceived: 9 }]), 5);
});

test("a machine is too slow that sends too few frames for three seconds", () => {
  const slowness = new Slowness();
  assert.deepEqual([20, 20, 21, 20, 20, 20, 20, 21].map((rate) => slowness.add(rate, 30, "cpu")), [false, false, false, false, false, true, true, false]);
});

test("few frames of a screen or by a slow network are no slow machine", () => {
  const slowness = new Slowness();
  assert.deepEqual([1, 1, 1, 1].map((rate) => slowness.add(rate, null, "none")), [false, false, false, false]);
  assert.deepEqual([5, 5, 5, 5].map((rate) => slowness.add(rate, 30, "bandwidth")), [false, false, false, false]);
  assert.deepEqual([5, 5, 5].map((rate) => slowness.add(rate, 30, "none")), [false, false, true]);
});

const received = (videoFrames, keyFrames, lostVideoFrames = 0) => ({ videoFrames, keyFrames, lostVideoFrames, lostAudioFrames: 0 });

test("what the server receives is told by its counters", () => {
  const view = new ServerView();
  assert.equal(view.figures, null);
  view.add(0, received(100, 10, 7));
  assert.equal(view.figures, null);
  for (let second = 2; second <= 60; second += 2) view.add(second * 1000, received(100 + second * 30, 10 + second / 2, second > 30 ? 9 : 7));
  assert.deepEqual(view.figures, { frameRate: 30, keyFrameSeconds: 2, lost: 2 });
  // The last seconds count: nothing came any more.
  for (let second = 62; second <= 68; second += 2) view.add(second * 1000, received(1900, 40, 9));
  assert.equal(view.figures.frameRate, 0);
  view.add(70_000, received(5, 1));
  assert.equal(view.figures, null, "a stream that was forgotten begins anew");
});

const OFFER = ["v=0", "a=group:BUNDLE 0 1", "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=ice-ufrag:new1", "a=ice-pwd:secret1", "a=mid:0",
  "m=video 9 UDP/TLS/RTP/SAVPF 96", "a=ice-ufrag:new1", "a=ice-pwd:secret1", "a=mid:1", ""].join("\r\n");
const ANSWER = ["v=0", "a=ice-lite", "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0", "a=ice-ufrag:old", "a=ice-pwd:older",
  "a=fingerprint:sha-256 AB", "a=candidate:1 1 udp 9 192.0.2.1 8189 typ host", "a=end-of-candidates",
  "m=video 9 UDP/TLS/RTP/SAVPF 96", "a=mid:1", "a=ice-ufrag:old", "a=ice-pwd:older",
  "a=candidate:1 1 udp 9 192.0.2.1 8189 typ host", "a=end-of-candidates", ""].join("\r\n");

test("ICE begins again by a fragment, and the answer gets the server's new name", () => {
  assert.equal(restartFragment(OFFER), ["a=group:BUNDLE 0 1", "a=ice-ufrag:new1", "a=ice-pwd:secret1",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111", "a=mid:0", ""].join("\r\n"));
  const text = restarted(ANSWER, "a=ice-lite\r\na=ice-ufrag:next\r\na=ice-pwd:nexter\r\na=candidate:1 1 udp 9 192.0.2.9 8189 typ host\r\na=end-of-candidates\r\n");
  assert.equal(text, ANSWER.replaceAll(":older", ":nexter").replaceAll(":old", ":next")
    .replaceAll("192.0.2.1 ", "192.0.2.9 ")
    .replace("a=fingerprint:sha-256 AB\r\na=candidate:1 1 udp 9 192.0.2.9 8189 typ host\r\na=end-of-candidates\r\n",
      "a=candidate:1 1 udp 9 192.0.2.9 8189 typ host\r\na=end-of-candidates\r\na=fingerprint:sha-256 AB\r\n"));
  assert.equal(restarted(ANSWER, "").includes("a=ice-ufrag:old"), true);
  assert.equal(restartFragment(""), "");
});

test("a lost connection begins again in its session, then in a new one", () => {
  const plan = new ReconnectPlan();
  assert.deepEqual(plan.next, { kind: "restart", afterMilliseconds: 0 });
  assert.ok(plan.tried("restart", null));
  assert.deepEqual(plan.next, { kind: "restart", afterMilliseconds: 500 });
  assert.ok(plan.tried("restart", 200));
  assert.ok(plan.tried("restart", 200));
  assert.equal(plan.next.kind, "publish", "two restarts that led to no connection");
  assert.ok(plan.tried("publish", 201));
  assert.equal(plan.next.kind, "restart");
  plan.connected();
  assert.deepEqual(plan.next, { kind: "restart", afterMilliseconds: 0 });
});

test("a session that is over is followed by the next at once", () => {
  const plan = new ReconnectPlan();
  assert.ok(plan.tried("restart", 404));
  assert.deepEqual(plan.next, { kind: "publish", afterMilliseconds: 0 });
  assert.ok(plan.tried("publish", 409), "the name is still taken: it will be free");
  assert.equal(plan.next.kind, "publish");
  assert.ok(plan.tried("publish", 429, 7));
  assert.deepEqual(plan.next, { kind: "publish", afterMilliseconds: 7000 });
  assert.ok(plan.tried("publish", 503, 1e9));
  assert.equal(plan.next.afterMilliseconds, 30_000);
  assert.ok(plan.tried("publish", null));
  assert.equal(plan.tried("publish", 401), false, "a key that is no longer good is final");
});

test("a stream whose session is over is somebody else's, at its end, or waits", () => {
  const live = { state: "live" }, ended = { state: "ended" }, waiting = { state: "reconnecting" };
  assert.deepEqual([live, ended, waiting, null, "hidden"].map((stream) => fateOf("closed", stream, true)),
    ["taken", "ended", "free", "free", "unseen"]);
  assert.deepEqual([live, ended, waiting, null, "hidden"].map((stream) => fateOf("gone", stream, true)),
    ["taken", "free", "free", "free", "unseen"], "the reconnect window may have ended it");
  assert.deepEqual([live, ended, waiting, "hidden"].map((stream) => fateOf("closed", stream, false)),
    ["stopping", "stopping", "stopping", "stopping"], "a server that goes down");
});

test("a name is taken back from nobody", () => {
  const plan = new ReconnectPlan();
  assert.equal(plan.ending, null);
  plan.tried("restart", 412);
  assert.equal(plan.ending, null, "a session that takes no change may be there");
  plan.tried("restart", 404);
  assert.equal(plan.ending, "gone");
  assert.equal(plan.mayReplace("taken", 0), false);
  const told = new ReconnectPlan();
  told.tried("restart", 410);
  assert.equal(told.ending, "gone", "the server has ended it, and says why for a while");
  plan.closed();
  assert.deepEqual([plan.ending, plan.next.kind], ["closed", "publish"]);
  assert.equal(plan.mayReplace("ended", 0), false);
  assert.ok(plan.mayReplace("stopping", 0));
  assert.equal(plan.ending, "gone", "it is asked again before the next try");
  plan.tried("publish", 503);
  assert.equal(plan.ending, "gone");
  plan.tried("publish", 201);
  assert.equal(plan.ending, null);
});

test("a stream that is not shown gets one new session in a minute", () => {
  const plan = new ReconnectPlan();
  plan.closed();
  assert.ok(plan.mayReplace("unseen", 5));
  assert.equal(plan.ending, null, "further tries of the same session ask no more");
  plan.connected();
  plan.closed();
  assert.equal(plan.mayReplace("unseen", 60_004), false);
  assert.ok(plan.mayReplace("unseen", 60_005));
});

test("a name that stays taken is somebody else's", () => {
  const plan = new ReconnectPlan();
  for (let number = 1; number < 10; number += 1) assert.ok(plan.tried("publish", 409), String(number));
  assert.ok(plan.tried("publish", 503));
  for (let number = 1; number < 10; number += 1) assert.ok(plan.tried("publish", 409), String(number));
  assert.equal(plan.tried("publish", 409), false);
});

test("STUN and TURN servers are read from Link", () => {
  assert.deepEqual(iceServersOf('<stun:stun.example.net>; rel="ice-server", ' +
    '<turn:turn.example.net:3478?transport=udp>; rel="ice-server"; username="a,<b>;c"; credential="p\\"q"; credential-type="password"'), [
    { urls: "stun:stun.example.net" }, { urls: "turn:turn.example.net:3478?transport=udp", username: "a,<b>;c", credential: 'p"q' }]);
  assert.deepEqual(iceServersOf('<https://example.net>; rel="ice-server", <stun:other.example.net>; rel="next", <stun:x'), []);
  assert.deepEqual(iceServersOf(""), []);
  assert.equal(iceServersOf("<stun:a>; rel=ice-server,".repeat(20)).length, 8);
});

test("pauses grow to five seconds, and a network that came back ends them", () => {
  const plan = new ReconnectPlan(), pauses = [];
  for (let number = 0; number < 8; number += 1) {
    pauses.push(plan.next.afterMilliseconds);
    plan.tried("restart", null);
  }
  assert.deepEqual(pauses, [0, 500, 1000, 2000, 3000, 5000, 5000, 5000]);
  plan.hurry();
  assert.equal(plan.next.afterMilliseconds, 0);
  assert.deepEqual([null, 408, 500, 503, 409, 429, 400, 401, 404, 422].map(outcomeOf), [
    "unreachable", "unreachable", "unreachable", "unreachable", "busy", "busy", "refused", "refused", "refused", "refused"]);
});

test("a copy keeps its newest parts within its bounds", () => {
  const copy = new CopyParts(1000, 60_000);
  const [first, second] = [copy.begin(0), copy.begin(10_000)];
  copy.add(first, "a", 600, 9000);
  copy.add(second, "b", 400, 19_000);
  assert.deepEqual(copy.parts.map(({ content }) => content), [["a"], ["b"]]);
  copy.add(second, "c", 1, 20_000);
  assert.deepEqual(copy.parts, [second], "a byte more than the bound");
  copy.add(second, "d", 5000, 21_000);
  assert.deepEqual([copy.bytes, copy.parts.length], [5401, 1], "the part that grows stays whole");
  assert.ok(copy.isFull(second));
  const third = copy.begin(90_000);
  assert.equal(copy.parts.length, 1, "a part without content is none");
  copy.add(third, "e", 1, 90_000);
  assert.ok(!copy.isFull(third));
  assert.deepEqual(copy.parts, [third]);
  copy.clear();
  assert.deepEqual([copy.bytes, copy.parts], [0, []]);
});
