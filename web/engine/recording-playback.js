/** Playback of a recording for the seek bar: its range and the wall clock at each position. */

import { GrowingRecording } from "./growing-recording.js";

/** @typedef {{at: number, time: number}} Clock `at`: seconds of the recording; `time`: milliseconds since 1970. */

export class RecordingPlayback {
  atLiveEdge = false;
  hasPlayed = true;
  #video;
  /** @type {Clock[]} In order. Between two entries the wall clock advances with the media. */
  #clock = [];
  /** @type {GrowingRecording | null} Set while the recording is being written. */
  #running = null;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#video = video;
  }

  /**
   * Plays a recording that is being written.
   * @param {string} url URL of its multivariant playlist.
   */
  follow(url) {
    this.leave();
    this.#running = new GrowingRecording(this.#video, url);
  }

  leave() {
    this.#running?.leave();
    this.#running = null;
  }

  /** Lets the seek bar use this object in place of an engine. */
  get engine() { return this; }

  /** @returns {{start: number, end: number} | null} */
  get range() {
    if (this.#running !== null) return this.#running.range;
    const { duration } = this.#video;
    return Number.isFinite(duration) && duration > 0 ? { start: 0, end: duration } : null;
  }

  /** @param {{at: number, time: string}[]} clock From the API. */
  setClock(clock) {
    this.#clock = clock.map(({ at, time }) => ({ at, time: Date.parse(time) })).filter((c) => !Number.isNaN(c.time));
  }

  /** @param {number} seconds Seconds of media. @returns {number | null} Milliseconds since 1970; null if unknown. */
  dateAt(seconds) {
    if (this.#running !== null) return this.#running.dateAt(seconds);
    const known = this.#clock.findLast(({ at }) => at <= seconds + 1e-3) ?? this.#clock.at(0);
    return known === undefined ? null : known.time + (seconds - known.at) * 1000;
  }

  /** @param {number} seconds Seconds of media. */
  seek(seconds) {
    if (this.#running !== null) return this.#running.seek(seconds);
    const { range } = this;
    if (range !== null) this.#video.currentTime = Math.min(Math.max(seconds, range.start), range.end);
  }
}
