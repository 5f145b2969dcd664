/** Playback by WebRTC (WHEP): the lowest delay. Nothing is kept, so nothing can be sought to. */

import { timeout } from "../media/fetching.js";
import { iceServersOf, useServers } from "../media/ice-servers.js";
import { HTTPFailure } from "../media/playback-result.js";
import { endingOf } from "../media/session-ending.js";

/** @typedef {import("./engine.js").Engine} Engine */
/** @typedef {import("../media/playback-result.js").PlaybackResult} PlaybackResult */

/** Time limit of one request. The server waits for a stream that has just begun. */
const REQUEST_MILLISECONDS = 15_000;
/** From the answer to the connection, and from there to the first frame: key frames may be some seconds apart. */
const CONNECT_MILLISECONDS = 4000;
const FIRST_FRAME_MILLISECONDS = 8000;
/** Media that stays away for longer is lost. */
const SILENCE_MILLISECONDS = 4000;
/** A viewer who pauses for longer gets no media meanwhile. */
const PAUSE_MILLISECONDS = 15_000;
const STATISTICS_MILLISECONDS = 500;
/** From 1900, where times of NTP begin, to 1970, in milliseconds. */
const NTP_EPOCH = 2_208_988_800_000;

/** @implements {Engine} */
export class WebRTCEngine {
  name = /** @type {const} */ ("webrtc");
  /** @type {import("../media/live-window.js").Quality[]} Empty: there is one. */
  qualities = [];
  quality = "";
  isAutomatic = true;
  /** @type {import("../media/live-window.js").Audio[]} Empty: there is one. */
  audios = [];
  audio = "";
  /** @type {string[]} The stream's. */
  codecs = [];
  stalls = 0;
  /** @type {number | null} */
  bytes = 0;
  range = null;
  target = null;
  behind = 0;
  liveTolerance = 1;
  isFollowed = true;
  playsFromWindow = false;
  /** How the media comes: "UDP" or "TCP". */
  #path = "";
  #video;
  #url;
  #intent;
  #beforeReset;
  /** @type {RTCPeerConnection | null} */
  #peer = null;
  #askedAt = -Infinity;
  /** When bytes came last, and when the viewer paused. */
  #heardAt = 0;
  #pausedAt = Infinity;
  /** Frames shown of this connection. */
  #frames = 0;
  /** When what is shown now was sent by the server, in milliseconds since 1970. */
  #shownDate = NaN;

  /**
   * @param {HTMLVideoElement} video
   * @param {string} url URL that takes offers.
   * @param {{plays: boolean}} intent Whether the viewer wants playback.
   * @param {() => void} beforeReset Called before the element is reset, while its last frame can still be read.
   */
  constructor(video, url, intent, beforeReset) {
    this.#video = video;
    this.#url = url;
    this.#intent = intent;
    this.#beforeReset = beforeReset;
  }

  static supported() { return "RTCPeerConnection" in globalThis; }

  get source() { return this.#path === "" ? "WebRTC" : `WebRTC, ${this.#path}`; }
  onPlayRequest = () => {};
  async chooseQuality() {}
  async chooseAudio() {}
  seek() {}
  goLive() {}
  dateAt() { return null; }

  /** @param {import("../api/api.js").Stream} _ @param {number} now @returns {number | null} Seconds from the server to the screen. */
  latency(_, now) { return Number.isFinite(this.#shownDate) ? Math.max(0, (now - this.#shownDate) / 1000) : null; }

  tick() {
    if (this.#peer === null) return;
    const now = performance.now();
    this.#pausedAt = this.#video.paused && !this.#intent.plays ? Math.min(this.#pausedAt, now) : Infinity;
    if (now - this.#askedAt >= STATISTICS_MILLISECONDS) {
      this.#askedAt = now;
      this.#measure(this.#peer);
    }
  }

  /** @param {RTCPeerConnection} peer */
  async #measure(peer) {
    const report = await peer.getStats();
    if (peer !== this.#peer) return;
    let bytes = 0;
    for (const one of /** @type {any} */ (report).values()) {
      if (one.type === "inbound-rtp") {
        bytes += one.bytesReceived;
        if (one.kind === "video") {
          this.#frames = one.framesDecoded ?? 0;
          this.stalls = one.freezeCount ?? this.stalls;
        } else if ((one.totalSamplesReceived ?? 0) > 0) {
          this.#frames = Math.max(this.#frames, 1);
        }
        if (one.estimatedPlayoutTimestamp > 0) this.#shownDate = one.estimatedPlayoutTimestamp - NTP_EPOCH;
      }
      if (one.type === "candidate-pair" && one.nominated) {
        this.#path = String(report.get(one.localCandidateId)?.protocol ?? "").toUpperCase();
      }
    }
    if (bytes !== this.bytes) this.#heardAt = performance.now();
    this.bytes = bytes;
  }

  /**
   * Plays until the connection ends. Resolves with the reason; never throws.
   * @param {string} publication
   * @param {AbortSignal} signal
   * @returns {Promise<PlaybackResult>}
   */
  async play(publication, signal) {
    const peer = new RTCPeerConnection();
    const media = new MediaStream();
    let session = "";
    try {
      peer.addEventListener("track", ({ track, receiver }) => {
        // Nothing is held back that the network does not make necessary.
        if ("jitterBufferTarget" in receiver) /** @type {any} */ (receiver).jitterBufferTarget = 0;
        media.addTrack(track);
      });
      for (const kind of ["video", "audio"]) peer.addTransceiver(kind, { direction: "recvonly" });
      const offer = await peer.createOffer();
      const answer = await fetch(this.#url, {
        method: "POST", cache: "no-store", signal: timeout(REQUEST_MILLISECONDS),
        headers: { "Content-Type": "application/sdp" }, body: offer.sdp,
      });
      if (!answer.ok) return await refused(answer);
      session = new URL(answer.headers.get("Location") ?? "", answer.url).href;
      const missing = leftOut(answer.headers.get("Weir-Left-Out") ?? "");
      if (missing !== null) return { kind: "unplayable", reason: missing };
      useServers(peer, iceServersOf(answer.headers.get("Link") ?? ""));
      await peer.setLocalDescription(offer);
      await peer.setRemoteDescription({ type: "answer", sdp: await answer.text() });
      if (signal.aborted) return { kind: "stopped" };
      this.#beforeReset();
      this.#reset(peer);
      this.#video.srcObject = media;
      const result = await this.#end(peer, signal);
      if (result.kind === "lost" && result.reason !== "path") result.ending = await endingOf(session);
      return signal.aborted ? { kind: "stopped" } : result;
    } catch (error) {
      return signal.aborted ? { kind: "stopped" } : { kind: "lost", reason: error instanceof Error ? error.message : String(error) };
    } finally {
      if (this.#peer === peer) this.#peer = null;
      if (session !== "") fetch(session, { method: "DELETE", keepalive: true }).catch(() => {});
      peer.close();
    }
  }

  /** @param {RTCPeerConnection} peer */
  #reset(peer) {
    this.#peer = peer;
    this.#heardAt = performance.now();
    [this.bytes, this.#frames, this.#path, this.#shownDate, this.#pausedAt] = [0, 0, "", NaN, Infinity];
  }

  /**
   * @param {RTCPeerConnection} peer
   * @param {AbortSignal} signal
   * @returns {Promise<PlaybackResult>} Why it ends, once it does.
   */
  #end(peer, signal) {
    const began = performance.now();
    let connectedAt = Infinity;
    return new Promise((resolve) => {
      /** @param {PlaybackResult} result */
      const end = (result) => {
        clearInterval(timer);
        signal.removeEventListener("abort", stop);
        resolve(result);
      };
      const stop = () => end({ kind: "stopped" });
      const look = () => {
        const now = performance.now();
        const isOver = peer.getReceivers().some((receiver) => receiver.transport?.state === "closed");
        if (peer.connectionState === "connected") connectedAt = Math.min(connectedAt, now);
        if (isOver || peer.connectionState === "failed") {
          end({ kind: "lost", reason: connectedAt === Infinity ? "path" : "the server ended the session" });
        } else if (connectedAt === Infinity ? now - began > CONNECT_MILLISECONDS
          : this.#frames === 0 && now - connectedAt > FIRST_FRAME_MILLISECONDS) {
          end({ kind: "unplayable", reason: connectedAt === Infinity ? "path" : "noMedia" });
        } else if (connectedAt < Infinity && now - Math.max(connectedAt, this.#heardAt) > SILENCE_MILLISECONDS) {
          end({ kind: "lost", reason: "no media came any more" });
        } else if (now - this.#pausedAt > PAUSE_MILLISECONDS) {
          end({ kind: "paused" });
        }
      };
      const timer = setInterval(look, 200);
      signal.addEventListener("abort", stop);
    });
  }

  async drain() {}

  /** Releases the video element. */
  detach() {
    this.#peer = null;
    this.#video.srcObject = null;
  }
}

/**
 * @param {string} field `video;code=b-frames;detail="…", audio;code=codec;detail="…"`
 * @returns {string | null} Why a medium that the stream has is left out; null if none is.
 */
function leftOut(field) {
  const codes = [...field.matchAll(/(?:^|,\s*)\w+;code=([\w-]+)/g)].map(([, code]) => code).filter((code) => code !== "none");
  return codes.length === 0 ? null : codes.includes("b-frames") ? "bFrames" : "codec";
}

/** @param {Response} answer @returns {Promise<PlaybackResult>} */
async function refused(answer) {
  const { code = "", title = "", detail = "" } = await answer.json().catch(() => ({}));
  const { status, isFull, retryAfter } = new HTTPFailure(answer, String(title));
  if (code === "webrtc-off") return { kind: "unplayable", reason: "off" };
  if (code === "nothing-fits") return { kind: "unplayable", reason: String(detail).includes("B-frames") ? "bFrames" : "codec" };
  return { kind: "refused", status, isFull, retryAfter, reason: "refused" };
}
