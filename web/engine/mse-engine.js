/**
 * Playback by Media Source Extensions. At the live edge media come as one endless response or part by part; farther
 * back they come from the window's segments. All of it goes into the same buffers.
 */

import { Adaptation } from "../media/adaptation.js";
import { anySignal } from "../media/fetching.js";
import { LiveWindow } from "../media/live-window.js";
import { LiveEdge } from "./live-edge.js";
import { ProgressiveSource } from "./progressive-source.js";
import { SegmentLoader } from "./segment-loader.js";
import { SourceBuffers } from "./source-buffers.js";

/** @typedef {import("./engine.js").Engine} Engine */

/** A wish to seek closer to the edge than this many seconds over the target is a wish to be there. */
const AT_EDGE = 1;

/** @implements {Engine} */
export class MSEEngine {
  #video;
  #intent;
  #delivery;
  #buffers;
  #edge;
  #window;
  #adaptation;
  #progressive;
  #loader;
  #publication = "";
  /** @type {number | null} Where to go on from in the window; null at the edge. */
  #place = null;
  #switch = new AbortController();
  #reading = new AbortController();
  /** Called when the viewer wants media and nothing is being played. */
  onPlayRequest = () => {};

  /**
   * @param {HTMLVideoElement} video
   * @param {{mp4: string, hls: string}} urls
   * @param {{plays: boolean}} intent Whether the viewer wants it to play.
   * @param {() => void} beforeReset Called while the last picture can still be read.
   * @param {"mse" | "hls"} delivery How media come at the edge: by `stream.mp4`, or by HLS parts.
   */
  constructor(video, urls, intent, beforeReset, delivery) {
    this.name = delivery;
    this.#video = video;
    this.#intent = intent;
    this.#delivery = delivery;
    this.#buffers = new SourceBuffers(video, beforeReset);
    this.#edge = new LiveEdge(video);
    this.#window = new LiveWindow(urls.hls);
    this.#adaptation = new Adaptation(this.#window, this.#window.throughput);
    this.#progressive = new ProgressiveSource(video, urls.mp4, intent, this.#buffers, this.#edge);
    this.#loader = new SegmentLoader(video, this.#window, this.#buffers, this.#edge);
    video.addEventListener("waiting", () => this.#adaptation.stalled());
    video.addEventListener("play", () => { if (this.#buffers.isOpen) this.#edge.resumed(); });
  }

  /** @type {string} For people. */
  get source() {
    if (this.#place !== null) return "HLS segments";
    if (this.#delivery === "mse") return "stream.mp4";
    return this.#window.main?.playlist?.partTarget ? "HLS parts" : "HLS segments";
  }
  get qualities() { return this.#delivery === "hls" && this.#window.qualities.length > 1 ? this.#window.qualities : []; }
  get quality() { return this.#window.quality; }
  get isAutomatic() { return this.#window.isAutomatic; }

  /** @param {string | null} name Taken from the next segment on. */
  async chooseQuality(name) {
    this.#window.isAutomatic = name === null;
    if (name !== null) await this.#window.choose(name);
  }

  /** @type {string[]} Codec strings from the init segments. */
  get codecs() { return this.#buffers.codecs; }
  get stalls() { return this.#edge.stalls; }
  /** Seconds of media that the playhead keeps ahead of it at the edge. */
  get target() { return this.#edge.target; }
  /** Bytes of media received. */
  get bytes() { return this.#buffers.bytes; }
  /** Seconds behind the edge from where on "go live" makes a difference. */
  get liveTolerance() { return this.#edge.delay + 2; }
  /** Whether the viewer follows the live edge. */
  get isFollowed() { return this.#place === null && this.#edge.isFollowed; }
  /** Whether something is to be played though the stream has ended. */
  get playsFromWindow() { return this.#place !== null && this.#window.isReady; }
  /** Seconds between the playhead and the newest picture. */
  get behind() {
    const { range } = this;
    return range === null ? 0 : Math.max(0, range.end - this.#video.currentTime);
  }

  /** The seconds between which the viewer may seek; null as long as nothing is known. */
  get range() {
    const { main } = this.#window, { buffered } = this.#video;
    const there = buffered.length > 0 ? { start: buffered.start(0), end: buffered.end(buffered.length - 1) } : null;
    const start = main?.timeline.isAnchored ? main.timeline.start : null;
    const end = main?.timeline.isAnchored ? main.liveEnd : null;
    if (start === null || end === null) return there;
    // At the edge the newest picture is here before a playlist tells of it.
    if (there === null || this.#place !== null) return { start, end };
    return { start, end: this.isFollowed ? there.end : Math.max(there.end, end) };
  }

  /** @param {number} time Seconds of media. @returns {number | null} The wall-clock time there, milliseconds since 1970. */
  dateAt(time) { return this.#window.dateAt(time); }

  /** @param {number} time Seconds of media. */
  seek(time) {
    const { range } = this;
    if (range === null) return;
    if (time >= range.end - this.#edge.delay - AT_EDGE) {
      this.goLive();
      return;
    }
    const wanted = Math.max(time, range.start);
    const { buffered } = this.#video;
    const last = buffered.length - 1;
    // While another place is being filled, what is buffered is about to go.
    const isHere = this.#edge.isPlaced && last >= 0 && buffered.start(last) <= wanted && wanted < buffered.end(last);
    this.#edge.stay(isHere ? "buffered" : "pending");
    this.#video.currentTime = wanted;
    if (!isHere) this.#go(wanted);
  }

  goLive() {
    const isConnected = this.#place === null && this.#buffers.isOpen;
    if (isConnected) this.#edge.jump();
    else {
      this.#edge.reset();
      this.#edge.isFollowed = true;
      this.#go(null);
    }
  }

  tick() {
    this.#edge.tick();
    if (this.#delivery === "hls" && this.#buffers.isOpen && !this.#video.paused) this.#adaptation.tick();
    const video = this.#video, { main } = this.#window;
    const end = main?.timeline.end ?? null;
    const isStalled = !video.paused && !video.seeking && video.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
    // Whoever has come to the end of the window is at the edge.
    if (this.#place !== null && isStalled && end !== null && !main?.playlist?.isEnded &&
        video.currentTime > end - AT_EDGE) this.goLive();
  }

  /**
   * @param {import("../api/api.js").Stream} stream
   * @param {number} now Server time, milliseconds since 1970.
   * @returns {number | null} Seconds from the publisher to the screen.
   */
  latency(stream, now) {
    const { currentTime } = this.#video;
    let shown = this.dateAt(currentTime);
    if (shown === null && stream.anchor) {
      shown = Date.parse(stream.anchor.wall) + (currentTime - stream.anchor.mediaSeconds) * 1000;
    }
    return shown === null ? null : (now - shown) / 1000;
  }

  /**
   * Plays until the stream ends or fails; resolves with the reason and never throws.
   * @param {string} publication A text that changes with each new publication of the stream.
   * @param {AbortSignal} signal
   * @returns {Promise<import("../media/playback-result.js").PlaybackResult>}
   */
  async play(publication, signal) {
    if (publication !== this.#publication) this.#begin(publication, signal);
    for (;;) {
      const turn = this.#switch = new AbortController();
      const both = anySignal(signal, turn.signal);
      const atEdge = this.#place === null;
      const isFed = this.#delivery === "hls" || !atEdge;
      const result = await this.#run(both);
      if (signal.aborted) return { kind: "stopped" };
      if (turn.signal.aborted) continue;
      if (result.kind === "newEpoch" || (isFed && result.isFull)) {
        this.#forget();
        this.#buffers.forget();
        return result;
      }
      const isBehind = result.kind === "paused" || !this.#edge.isFollowed && result.kind !== "unplayable";
      if (atEdge && isBehind && this.#window.isReady) {
        // Whoever is behind the edge goes on from the window.
        this.#edge.stay("buffered");
        this.#place = this.#video.currentTime;
        continue;
      }
      if (this.#place !== null) this.#place = result.kind === "finished" ? null : this.#video.currentTime;
      return result;
    }
  }

  /**
   * Resolves when everything that was appended has been shown.
   * @param {AbortSignal} signal
   */
  async drain(signal) {
    let last = -1;
    while (!signal.aborted && !this.#video.paused && this.#video.currentTime !== last && this.#place === null) {
      last = this.#video.currentTime;
      await new Promise((resume) => setTimeout(resume, 400));
    }
  }

  /** Lets go of the video element. */
  detach() {
    this.#forget();
    this.#buffers.detach();
  }

  /** @param {AbortSignal} signal @returns {Promise<import("../media/playback-result.js").PlaybackResult>} */
  #run(signal) {
    if (this.#place !== null) {
      this.#window.pace = "segments";
      return this.#loader.run(this.#place, this.#publication, signal);
    }
    this.#window.pace = this.#delivery === "hls" ? "parts" : "segments";
    if (this.#delivery === "hls") return this.#loader.run("edge", this.#publication, signal);
    return this.#progressive.run(this.#publication, signal);
  }

  /**
   * Another publication has another time axis and another window.
   * @param {string} publication @param {AbortSignal} signal
   */
  #begin(publication, signal) {
    this.#publication = publication;
    this.#place = null;
    this.#edge.reset();
    this.#adaptation.reset();
    this.#edge.isFollowed = true;
    this.#reading.abort();
    this.#reading = new AbortController();
    this.#window.run(anySignal(signal, this.#reading.signal));
  }

  /** Whoever plays next reads the playlists as they are then; until then nobody asks for them. */
  #forget() {
    this.#reading.abort();
    this.#publication = "";
  }

  /** @param {number | null} place */
  #go(place) {
    this.#place = place;
    this.#switch.abort();
    this.onPlayRequest();
  }
}
