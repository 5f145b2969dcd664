/** A publisher by WebRTC: its connection, and the way back when that is lost. */

import { fetchStreamNow, takesPublishers } from "../api/api.js";
import { useServers } from "../media/ice-servers.js";
import { fateOf, ReconnectPlan } from "../media/reconnect-plan.js";
import { heardOf, sentOf } from "../media/sending-figures.js";
import { restarted, restartFragment } from "../media/session-description.js";
import { t } from "../strings/strings.js";
import { serverProblem } from "./problems.js";
import * as whip from "./whip.js";

/** A connection often comes back by itself. */
const TROUBLE_MILLISECONDS = 1500;
/** From the server's answer to the connection. */
const CONNECT_MILLISECONDS = 6000;
const FIRST_CONNECT_MILLISECONDS = 15_000;
/** The server sends reports all the time. Browsers notice their absence late, after five seconds and more. */
const SILENCE_MILLISECONDS = 3000;
const WATCH_MILLISECONDS = 500;
/** Until the state of a stream shows what the server has done. */
const ENDED_MILLISECONDS = 300;

/** @typedef {"idle" | "connecting" | "live" | "reconnecting"} SenderState */
/** @typedef {import("../media/publish-settings.js").PublishSettings} PublishSettings */

/** Event: `change`, after the state changed. */
export class Sender extends EventTarget {
  /** @type {SenderState} */
  state = "idle";
  /** @type {string | null} Why it ended, if nobody asked for it. */
  reason = null;
  /** Why the server ended the session before this one, in its own words; empty if it did not, or once this one is live. */
  endedBecause = "";
  /** Whether the reason is a key that is missing or wrong. */
  wantsKey = false;
  /** @type {number | null} performance.now() of the beginning. */
  startedAt = null;
  /** Times that the connection was lost. */
  interruptions = 0;

  #name;
  #key;
  /** @type {() => PublishSettings} */
  #settings;
  /** @type {() => {video: MediaStreamTrack, audio: MediaStreamTrack}} */
  #tracks;
  /** @type {RTCPeerConnection | null} */
  #peer = null;
  /** @type {string | null} The session's address, until another one takes its place. */
  #session = null;
  #answer = "";
  #plan = new ReconnectPlan();
  /** Grows with each repair that begins or ends: an older one stops. */
  #round = 0;
  /** Whether it is asked why the server closed the session. */
  #isJudging = false;
  #timer = 0;
  #watch = 0;
  /** What was heard of the server, and when there was more. */
  #heard = { bytes: 0, at: 0 };
  /** @type {() => void} Ends a pause. */
  #wake = () => {};

  /**
   * @param {string} name @param {string} key Empty for none.
   * @param {() => PublishSettings} settings @param {() => {video: MediaStreamTrack, audio: MediaStreamTrack}} tracks
   */
  constructor(name, key, settings, tracks) {
    super();
    this.#name = name;
    this.#key = key;
    this.#settings = settings;
    this.#tracks = tracks;
  }

  #hurry = () => {
    this.#plan.hurry();
    this.#wake();
  };

  /** @param {SenderState} state */
  #become(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }

  async start() {
    addEventListener("online", this.#hurry);
    this.startedAt = performance.now();
    this.#watch = setInterval(() => this.#listen(), WATCH_MILLISECONDS);
    this.#become("connecting");
    const reply = await this.#publish().catch((error) => {
      // One that was stopped meanwhile did not fail.
      if (this.state === "connecting") throw error;
      return null;
    });
    if (reply === null || this.state !== "connecting") return;
    if (reply.status !== 201) return this.#fail(serverProblem(reply.problem, reply.status), reply.status === 401);
    this.#timer = setTimeout(() => this.#fail(t("publish.noPath")), FIRST_CONNECT_MILLISECONDS);
  }

  /** Makes a session. @returns {Promise<whip.Reply | null>} Null if the page stopped meanwhile. */
  async #publish() {
    const round = this.#round;
    this.#forget();
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    peer.addEventListener("connectionstatechange", () => { if (peer === this.#peer) this.#look(); });
    const { video, audio } = this.#tracks();
    const media = new MediaStream([video, audio]);
    peer.addTransceiver(audio, { direction: "sendonly", streams: [media] });
    const transceiver = peer.addTransceiver(video, { direction: "sendonly", streams: [media], sendEncodings: [this.#encoding] });
    prefer(transceiver, this.#settings().codec);
    await keepResolution(transceiver.sender);
    const offer = await peer.createOffer();
    const reply = await whip.offer(this.#name, this.#key, offer.sdp ?? "");
    if (round !== this.#round || peer !== this.#peer) {
      if (reply.location !== null) whip.end(reply.location, this.#key);
      return null;
    }
    if (reply.status !== 201) return reply;
    this.#session = reply.location;
    this.#answer = reply.text;
    useServers(peer, reply.iceServers);
    await peer.setLocalDescription(offer);
    await peer.setRemoteDescription({ type: "answer", sdp: this.#answer });
    // A server that ends a session says so by its last message of DTLS.
    const { transport } = transceiver.sender;
    transport?.addEventListener("statechange", () => {
      if (peer === this.#peer && transport.state === "closed") this.#ended();
    });
    return reply;
  }

  get #encoding() {
    const { bitrate, frameRate } = this.#settings();
    return { maxBitrate: bitrate, maxFramerate: frameRate };
  }

  /** The connection's state changed. */
  #look() {
    const state = this.#peer?.connectionState;
    if (state === "connected") this.#connected();
    else if (this.state === "live" && (state === "failed" || state === "disconnected")) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#repair(), state === "failed" ? 0 : TROUBLE_MILLISECONDS);
    }
  }

  #connected() {
    clearTimeout(this.#timer);
    this.#round += 1;
    this.#heard = { bytes: 0, at: performance.now() };
    this.#plan.connected();
    this.#wake();
    this.endedBecause = "";
    this.#become("live");
  }

  /** Looks whether anything comes from the server. */
  async #listen() {
    const peer = this.#peer;
    const bytes = peer === null ? 0 : heardOf(/** @type {any} */ (await peer.getStats()).values());
    if (peer === null || peer !== this.#peer) return;
    const now = performance.now();
    // Another way to the server counts from zero.
    if (bytes < this.#heard.bytes) this.#heard.bytes = bytes;
    else if (bytes > this.#heard.bytes) {
      this.#heard = { bytes, at: now };
      if (this.state === "reconnecting" && peer.connectionState === "connected") this.#connected();
    } else if (now - this.#heard.at > SILENCE_MILLISECONDS) this.#repair();
  }

  /** The server closed the connection: it restarts, another publisher took the name, or somebody ended the stream. */
  async #ended() {
    this.#plan.closed();
    // The repair that is under way looks before it makes a session.
    if (this.state === "reconnecting") return this.#wake();
    if (this.state !== "live" || this.#isJudging) return;
    const peer = this.#peer;
    clearTimeout(this.#timer);
    this.#isJudging = true;
    const goesOn = await this.#judge(() => peer === this.#peer);
    this.#isJudging = false;
    if (goesOn && peer === this.#peer) this.#repair();
  }

  /**
   * Asks what became of the stream, and ends where it has another publisher or none any more.
   * @param {() => boolean} isCurrent Whether the question is still one.
   * @returns {Promise<boolean>} Whether to go on.
   */
  async #judge(isCurrent) {
    const { ending } = this.#plan;
    if (ending === null) return true;
    if (ending === "closed") await new Promise((resume) => setTimeout(resume, ENDED_MILLISECONDS));
    const told = this.#session === null ? "" : whip.ending(this.#session, this.#key);
    const stream = await fetchStreamNow(this.#name).catch(() => null);
    this.endedBecause = await told || this.endedBecause;
    const isServerUp = stream === null || await takesPublishers();
    if (!isCurrent()) return false;
    const fate = fateOf(ending, stream, isServerUp);
    if (this.#plan.mayReplace(fate, performance.now())) return true;
    this.#fail(fate === "taken" ? t("publish.takenOver")
      : this.endedBecause === "" ? t("publish.endedByServer") : t("publish.endedBecause", { reason: this.endedBecause }));
    return false;
  }

  async #repair() {
    if (this.state !== "live" || this.#isJudging) return;
    const round = this.#round += 1;
    this.interruptions += 1;
    clearTimeout(this.#timer);
    this.#become("reconnecting");
    while (round === this.#round) {
      const { kind, afterMilliseconds } = this.#plan.next;
      await this.#pause(afterMilliseconds);
      if (round !== this.#round) return;
      // What a browser throws here, it may not throw the next time.
      const reply = await (kind === "restart" ? this.#restart() : this.#replaceSession(round)).catch(() => ({ ...whip.NONE }));
      if (reply === null || round !== this.#round) return;
      const goesOn = this.#plan.tried(kind, reply.status, reply.retryAfter);
      if (!goesOn) return this.#fail(serverProblem(reply.problem, reply.status), reply.status === 401);
      if (reply.status !== null && reply.status < 300) await this.#pause(CONNECT_MILLISECONDS);
    }
  }

  /**
   * Makes a session in place of the one that was lost.
   * @param {number} round Of the repair.
   */
  async #replaceSession(round) {
    const goesOn = await this.#judge(() => round === this.#round);
    return goesOn && round === this.#round ? this.#publish() : null;
  }

  /** Begins ICE again in the same session. */
  async #restart() {
    const peer = this.#peer;
    if (peer === null || this.#session === null || peer.connectionState === "closed") {
      return { ...whip.NONE, status: 404 };
    }
    const offer = await peer.createOffer({ iceRestart: true });
    const reply = await whip.restart(this.#session, this.#key, restartFragment(offer.sdp ?? ""));
    if (peer !== this.#peer) return null;
    if (reply.status === 200) {
      await peer.setLocalDescription(offer);
      this.#answer = restarted(this.#answer, reply.text);
      await peer.setRemoteDescription({ type: "answer", sdp: this.#answer });
    }
    return reply;
  }

  /** @param {number} milliseconds */
  #pause(milliseconds) {
    return /** @type {Promise<void>} */ (new Promise((resume) => {
      const timer = setTimeout(resume, milliseconds);
      this.#wake = () => { clearTimeout(timer); resume(); };
    }));
  }

  /**
   * Sends another track from now on.
   * @param {"video" | "audio"} kind
   * @param {MediaStreamTrack} track
   */
  async replace(kind, track) {
    const transceiver = this.#peer?.getTransceivers().find(({ sender }) => sender.track?.kind === kind);
    await transceiver?.sender.replaceTrack(track);
  }

  /** Takes the bit rate and frame rate of the settings. */
  async tune() {
    for (const { sender } of this.#peer?.getTransceivers() ?? []) {
      if (sender.track?.kind !== "video") continue;
      const parameters = sender.getParameters();
      if (parameters.encodings.length === 0) continue;
      Object.assign(parameters.encodings[0], this.#encoding);
      await sender.setParameters(parameters).catch(() => {});
    }
  }

  /** @returns {Promise<import("../media/sending-figures.js").Sent | null>} */
  async figures() {
    if (this.#peer === null) return null;
    const report = await this.#peer.getStats();
    return sentOf(/** @type {any} */ (report).values(), performance.now());
  }

  /** @param {string} reason @param {boolean} wantsKey */
  #fail(reason, wantsKey = false) {
    this.reason = reason;
    this.wantsKey = wantsKey;
    this.stop();
  }

  /** Ends the stream. The connection goes last: without it a publisher counts as lost, and its viewers wait for it. */
  async stop() {
    const [session, peer] = [this.#session, this.#peer];
    this.#peer = this.#session = null;
    const ended = session === null || this.#plan.ending !== null ? null : whip.end(session, this.#key);
    this.#over();
    await ended;
    peer?.close();
  }

  #over() {
    this.#round += 1;
    removeEventListener("online", this.#hurry);
    clearTimeout(this.#timer);
    clearInterval(this.#watch);
    this.#wake();
    this.#become("idle");
  }

  /** Ends the connection, not its session: that is of use until another one takes its place. */
  #forget() {
    const peer = this.#peer;
    this.#peer = null;
    peer?.close();
  }
}

/**
 * The size of the video stays: without this, browsers begin with a small one.
 * @param {RTCRtpSender} sender
 */
async function keepResolution(sender) {
  const parameters = /** @type {any} */ (sender.getParameters());
  parameters.degradationPreference = "maintain-resolution";
  // A browser that does not know it keeps its own way.
  await sender.setParameters(parameters).catch(() => {});
}

/** @param {RTCRtpTransceiver} transceiver @param {string} codec Empty: what the server prefers. */
function prefer(transceiver, codec) {
  const known = RTCRtpSender.getCapabilities?.("video")?.codecs ?? [];
  const wanted = known.filter(({ mimeType }) => mimeType.toUpperCase() === `VIDEO/${codec}`);
  if (codec === "" || wanted.length === 0) return;
  const repairs = known.filter(({ mimeType }) => /\/(rtx|red|ulpfec)$/i.test(mimeType));
  /** @type {any} */ (transceiver).setCodecPreferences?.([...wanted, ...repairs]);
}

/** @returns {string[]} The codecs that both this browser and the server may use. */
export function codecsHere() {
  const known = globalThis.RTCRtpSender?.getCapabilities?.("video")?.codecs ?? [];
  return ["H264", "VP9", "AV1"].filter((codec) => known.some(({ mimeType }) => mimeType.toUpperCase() === `VIDEO/${codec}`));
}
