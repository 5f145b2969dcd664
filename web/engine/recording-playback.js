/** A recording as a seek bar sees it: from its beginning to its end, with the time of day. */

import { GrowingRecording } from "./growing-recording.js";

/** @typedef {{at: number, time: number}} Clock From these seconds of the recording on, milliseconds since 1970. */

export class RecordingPlayback {
  atLiveEdge = false;
  hasPlayed = true;
  #video;
  /** @type {Clock[]} In order; the time of day moves with the media between two of them. */
  #clock = [];
  /** @type {GrowingRecording | null} While it is being written. */
  #running = null;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#video = video;
  }

  /**
   * Plays one that is being written.
   * @param {string} url Of its multivariant playlist.
   */
  follow(url) {
    this.leave();
    this.#running = new GrowingRecording(this.#video, url);
  }

  leave() {
    this.#running?.leave();
    this.#running = null;
  }

  /** What the seek bar asks. */
  get engine() { return this; }

  /** @returns {{start: number, end: number} | null} */
  get range() {
    if (this.#running !== null) return this.#running.range;
    const { duration } = this.#video;
    return Number.isFinite(duration) && duration > 0 ? { start: 0, end: duration } : null;
  }

  /** @param {{at: number, time: string}[]} clock As the API tells it. */
  setClock(clock) {
    this.#clock = clock.map(({ at, time }) => ({ at, time: Date.parse(time) })).filter((c) => !Number.isNaN(c.time));
  }

  /** @param {number} seconds Of media. @returns {number | null} Milliseconds since 1970; null where nobody knows. */
  dateAt(seconds) {
    if (this.#running !== null) return this.#running.dateAt(seconds);
    const known = this.#clock.findLast(({ at }) => at <= seconds + 1e-3) ?? this.#clock.at(0);
    return known === undefined ? null : known.time + (seconds - known.at) * 1000;
  }

  /** @param {number} seconds Of media. */
  seek(seconds) {
    if (this.#running !== null) return this.#running.seek(seconds);
    const { range } = this;
    if (range !== null) this.#video.currentTime = Math.min(Math.max(seconds, range.start), range.end);
  }
}
