/** Plays a recording that is still being written. The seekable range grows with the file. */

import { anySignal } from "../media/fetching.js";
import { LiveWindow } from "../media/live-window.js";
import { LiveEdge } from "./live-edge.js";
import { SegmentLoader } from "./segment-loader.js";
import { SourceBuffers } from "./source-buffers.js";

const TICK_MILLISECONDS = 250;

export class GrowingRecording {
  #video;
  #window;
  #buffers;
  #edge;
  #loader;
  #left = new AbortController();
  /** Aborts the loading that began at one position. */
  #turn = new AbortController();
  #timer;
  #publication;
  /** @type {Promise<import("../media/playback-result.js").PlaybackResult>} The current run of the loader. */
  #feeding = Promise.resolve({ kind: "stopped" });

  /** @param {HTMLVideoElement} video @param {string} url URL of the multivariant playlist. */
  constructor(video, url) {
    this.#video = video;
    this.#publication = url;
    this.#window = new LiveWindow(url);
    this.#buffers = new SourceBuffers(video, () => {});
    this.#edge = new LiveEdge(video, this.#left.signal);
    this.#loader = new SegmentLoader(video, this.#window, this.#buffers, this.#edge);
    this.#window.run(this.#left.signal);
    this.#timer = setInterval(() => this.#edge.tick(), TICK_MILLISECONDS);
    this.#begin();
  }

  /** @returns {{start: number, end: number} | null} */
  get range() {
    const { start, end, isAnchored } = this.#window.main?.timeline ?? { start: null, end: null, isAnchored: false };
    return isAnchored && start !== null && end !== null ? { start, end } : null;
  }

  /** @param {number} seconds Seconds of media. @returns {number | null} Milliseconds since 1970. */
  dateAt(seconds) { return this.#window.dateAt(seconds); }

  /** @param {number} seconds Seconds of media. */
  seek(seconds) {
    const { range } = this;
    if (range === null) return;
    const wanted = Math.min(Math.max(seconds, range.start), range.end);
    const { buffered } = this.#video;
    for (let n = 0; n < buffered.length; n += 1) {
      if (n === buffered.length - 1 && buffered.start(n) <= wanted && wanted < buffered.end(n)) {
        this.#video.currentTime = wanted;
        return;
      }
    }
    this.#edge.stay("pending");
    this.#video.currentTime = wanted;
    this.#feed(wanted);
  }

  /** Stops loading and releases the video element. */
  leave() {
    clearInterval(this.#timer);
    this.#left.abort();
    this.#buffers.detach();
  }

  async #begin() {
    const { signal } = this.#left;
    while (this.range === null && !signal.aborted) await this.#window.changed(signal);
    const start = this.range?.start;
    if (signal.aborted || start === undefined) return;
    this.#edge.stay("pending");
    this.#feed(start);
  }

  /** @param {number} place */
  async #feed(place) {
    this.#turn.abort();
    const turn = this.#turn = new AbortController();
    const signal = anySignal(turn.signal, this.#left.signal);
    // Runs follow one after the other, because they share the buffers.
    const feeding = this.#feeding = this.#feeding.then(() => this.#loader.run(place, this.#publication, signal));
    const { kind } = await feeding;
    // After a failure the loader is started again.
    if (signal.aborted || kind === "finished" || kind === "unplayable") return;
    setTimeout(() => { if (!signal.aborted) this.#feed(this.#video.currentTime); }, 4 * TICK_MILLISECONDS);
  }
}
