/**
 * Playback by Media Source Extensions. At the live edge, media comes from the endless `stream.mp4` or part by part.
 * Farther back it comes from the segments of the live window. All of it is appended to the same source buffers.
 */

import { Adaptation } from "../media/adaptation.js";
import { PARTS_FIRST } from "../media/early-requests.js";
import { anySignal } from "../media/fetching.js";
import { LiveWindow } from "../media/live-window.js";
import { rememberAudio, rememberedAudio } from "./audio-choice.js";
import { LiveEdge } from "./live-edge.js";
import { ProgressiveSource } from "./progressive-source.js";
import { SegmentLoader } from "./segment-loader.js";
import { SourceBuffers } from "./source-buffers.js";

/** @typedef {import("./engine.js").Engine} Engine */

/** A seek to less than this many seconds before the live position goes to the live edge. */
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
  /** @type {number | null} Position in the window to load from, in seconds of media; null at the edge. */
  #place = null;
  #switch = new AbortController();
  #reading = new AbortController();
  /** Whether playlists are polled, and whole segments loaded, because held requests would take the browser's connections. */
  isPolled = false;
  /** Called when a seek or "go live" needs `play` to be called again. */
  onPlayRequest = () => {};

  /**
   * @param {HTMLVideoElement} video
   * @param {{mp4: string, hls: string}} urls
   * @param {{plays: boolean}} intent Whether the viewer wants playback.
   * @param {() => void} beforeReset Called before the element is reset, while its last frame can still be read.
   * @param {"mse" | "hls"} delivery How media is delivered at the edge: by `stream.mp4` or by HLS parts.
   */
  constructor(video, urls, intent, beforeReset, delivery) {
    this.name = delivery;
    this.#video = video;
    this.#intent = intent;
    this.#delivery = delivery;
    this.#buffers = new SourceBuffers(video, beforeReset);
    this.#edge = new LiveEdge(video);
    this.#window = new LiveWindow(urls.hls + PARTS_FIRST);
    this.#window.preferredAudio = rememberedAudio();
    this.#adaptation = new Adaptation(this.#window, this.#window.throughput);
    this.#progressive = new ProgressiveSource(video, urls.mp4, intent, this.#buffers, this.#edge);
    this.#loader = new SegmentLoader(video, this.#window, this.#buffers, this.#edge);
    video.addEventListener("waiting", () => this.#adaptation.stalled());
    video.addEventListener("play", () => { if (this.#buffers.isOpen) this.#edge.resumed(); });
  }

  /** @type {string} Shown in the details panel. */
  get source() {
    if (this.#place !== null) return "HLS segments";
    if (this.#delivery === "mse") return "stream.mp4";
    return this.#window.main?.playlist?.partTarget && !this.isPolled ? "HLS parts" : "HLS segments";
  }
  get qualities() { return this.#delivery === "hls" && this.#window.qualities.length > 1 ? this.#window.qualities : []; }
  get quality() { return this.#window.quality; }
  get isAutomatic() { return this.#window.isAutomatic; }

  /** @param {string | null} name Null: automatic. A quality takes effect with the next segment. */
  async chooseQuality(name) {
    this.#window.isAutomatic = name === null;
    if (name !== null) await this.#window.choose(name);
  }

  get audios() { return this.#delivery === "hls" && this.#window.audios.length > 1 ? this.#window.audios : []; }
  get audio() { return this.#window.audio; }

  /** @param {string} name The choice takes effect with the next segment. */
  async chooseAudio(name) {
    await this.#window.chooseAudio(name);
    rememberAudio(name);
  }

  /** @type {string[]} Codec strings of the init segments. */
  get codecs() { return this.#buffers.codecs; }
  get stalls() { return this.#edge.stalls; }
  /** Seconds of media that are kept ahead of the playhead at the edge. */
  get target() { return this.#edge.target; }
  /** Bytes of media received. */
  get bytes() { return this.#buffers.bytes; }
  /** Seconds behind the newest media up to which the viewer counts as live. */
  get liveTolerance() { return this.#edge.delay + 2; }
  /** Whether the viewer follows the live edge. */
  get isFollowed() { return this.#place === null && this.#edge.isFollowed; }
  /** Whether media of the window is left to play, even if the stream has ended. */
  get playsFromWindow() { return this.#place !== null && this.#window.isReady; }
  /** Seconds between the playhead and the newest media. */
  get behind() {
    const { range } = this;
    return range === null ? 0 : Math.max(0, range.end - this.#video.currentTime);
  }

  /** Seconds of media that can be sought to; null while unknown. */
  get range() {
    const { main } = this.#window, { buffered } = this.#video;
    const there = buffered.length > 0 ? { start: buffered.start(0), end: buffered.end(buffered.length - 1) } : null;
    const start = main?.timeline.isAnchored ? main.timeline.start : null;
    const end = main?.timeline.isAnchored ? main.liveEnd : null;
    if (start === null || end === null) return there;
    // At the edge, media is buffered before a playlist lists it.
    if (there === null || this.#place !== null) return { start, end };
    return { start, end: this.isFollowed ? there.end : Math.max(there.end, end) };
  }

  /** @param {number} time Seconds of media. @returns {number | null} Wall clock at that time, in ms since 1970. */
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
    // While another position is being loaded, the present buffer is about to be emptied.
    const isHere = this.#edge.isPlaced && last >= 0 && buffered.start(last) <= wanted && wanted < buffered.end(last);
    this.#edge.stay(isHere ? "buffered" : "pending");
    this.#video.currentTime = wanted;
    if (!isHere) this.#go(wanted);
  }

  /** Polls from now on. */
  poll() {
    this.isPolled = true;
    this.#window.pace = "polls";
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
    // A playhead that has reached the end of the window is at the edge.
    if (this.#place !== null && isStalled && end !== null && !main?.playlist?.isEnded &&
        video.currentTime > end - AT_EDGE) this.goLive();
  }

  /**
   * @param {import("../api/api.js").Stream} stream
   * @param {number} now The server's clock, in milliseconds since 1970.
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
   * Plays until the stream ends or fails. Resolves with the reason; never throws.
   * @param {string} publication A text that is different for each publication of the stream.
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
      // After "unplayable": a rendition that this browser plays may be listed when the playlists are read again.
      if (result.kind === "newEpoch" || (isFed && (result.isFull || result.kind === "unplayable"))) {
        this.#forget();
        this.#buffers.forget();
        return result;
      }
      const isBehind = result.kind === "paused" || !this.#edge.isFollowed && result.kind !== "unplayable";
      if (atEdge && isBehind && this.#window.isReady) {
        // A viewer behind the edge continues from the window.
        this.#edge.stay("buffered");
        this.#place = this.#video.currentTime;
        continue;
      }
      if (this.#place !== null) this.#place = result.kind === "finished" ? null : this.#video.currentTime;
      return result;
    }
  }

  /**
   * Resolves when all appended media has been shown.
   * @param {AbortSignal} signal
   */
  async drain(signal) {
    let last = -1;
    while (!signal.aborted && !this.#video.paused && this.#video.currentTime !== last && this.#place === null) {
      last = this.#video.currentTime;
      await new Promise((resume) => setTimeout(resume, 400));
    }
  }

  /** Releases the video element. */
  detach() {
    this.#forget();
    this.#buffers.detach();
  }

  /** @param {AbortSignal} signal @returns {Promise<import("../media/playback-result.js").PlaybackResult>} */
  #run(signal) {
    if (this.#place !== null) {
      this.#window.pace = this.isPolled ? "polls" : "segments";
      return this.#loader.run(this.#place, this.#publication, signal);
    }
    this.#window.pace = this.isPolled ? "polls" : this.#delivery === "hls" ? "parts" : "segments";
    if (this.#delivery === "hls") return this.#loader.run("edge", this.#publication, signal);
    return this.#progressive.run(this.#publication, signal);
  }

  /**
   * Resets for a new publication: it has its own time axis and its own window.
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

  /** Stops reading the playlists. The next call of `play` reads them again. */
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
