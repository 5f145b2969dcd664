/**
 * Chooses the picture by what the connection carries: down as soon as the present one comes too slowly, up only after a
 * while of calm and only to one of which a whole segment was fetched for a trial, quickly enough.
 */

import { anySignal, fetchBytes, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMedia } from "./playlist.js";

/** With less than this many times its own rate, a picture is about to stall. */
const TOO_SLOW = 1.2;
/** Of what the connection carries, this much may be used after a change for the worse. */
const USED = 0.7;
/** A better picture must come this many times as fast as it is shown. */
const SPARE = 1.6;
/** A picture that comes this many times as fast as it is shown is not held up by the connection. */
const AMPLE = 2;
/** How long a change is left alone, in milliseconds: media that were on their way still tell of the former picture. */
const SETTLE = 4000;
/** How long it is calm before a better picture is tried; doubled with each trial that fails, and each return. */
const FIRST_CALM = 8000;
const LONGEST_CALM = 120_000;
/** A better picture that lasts so long was the right one. */
const PROVED = 30_000;
const TIMEOUT_MILLISECONDS = 8000;

export class Adaptation {
  #window;
  #throughput;
  #isBusy = false;
  #changedAt = -Infinity;
  #calmSince = performance.now();
  #calm = FIRST_CALM;
  #raisedAt = -Infinity;

  /**
   * @param {import("./live-window.js").LiveWindow} window
   * @param {import("./throughput.js").Throughput} throughput What is measured of the picture's media.
   */
  constructor(window, throughput) {
    this.#window = window;
    this.#throughput = throughput;
  }

  /** Another publication: what was learned of the connection remains, what was measured of media does not. */
  reset() {
    this.#throughput.reset();
    this.#calmSince = this.#changedAt = performance.now();
  }

  /** The playhead had to wait: for the connection, or for a server that has made nothing. */
  stalled() {
    const rate = this.#throughput.rate();
    if (rate === null || rate < (this.#present?.bandwidth ?? 0) * AMPLE) this.#isCalmAgain();
  }

  get #present() { return this.#window.qualities.find((q) => q.name === this.#window.quality); }

  /** To be called a few times each second while media are fetched at the edge. */
  tick(now = performance.now()) {
    const { qualities } = this.#window;
    if (!this.#window.isAutomatic || this.#isBusy || qualities.length < 2 || !this.#window.isReady) return;
    const present = this.#present;
    if (present === undefined || now - this.#changedAt < SETTLE) return;
    const rate = this.#throughput.rate(now);
    if (now - this.#raisedAt > PROVED && this.#raisedAt > 0) {
      this.#calm = FIRST_CALM;
      this.#raisedAt = -Infinity;
    }
    if (rate !== null && rate < present.bandwidth * TOO_SLOW) {
      this.#calmSince = now;
      const next = affordable(qualities, rate * USED);
      if (next.bandwidth < present.bandwidth) this.#work(() => this.#lower(next));
      return;
    }
    // Where nothing comes of a smaller picture, the publisher's own does.
    const own = qualities.find((q) => q.name === "");
    const isStalled = own !== undefined && present !== own && this.#window.isStalled;
    if (now - this.#calmSince > (isStalled ? SETTLE : this.#calm)) {
      const next = isStalled ? own : better(qualities, present);
      if (next !== null) this.#work(() => this.#raise(next));
    }
  }

  /** @param {() => Promise<void>} job */
  async #work(job) {
    this.#isBusy = true;
    try {
      await job();
    } catch {
      // The picture stays what it is; the next trial comes later.
      this.#isCalmAgain();
    } finally {
      this.#isBusy = false;
    }
  }

  /** @param {Quality} next */
  async #lower(next) {
    await this.#window.choose(next.name);
    if (this.#raisedAt > 0) this.#calm = Math.min(this.#calm * 2, LONGEST_CALM);
    this.#raisedAt = -Infinity;
    this.#changed();
  }

  /** @param {Quality} next */
  async #raise(next) {
    const rate = await trial(next);
    if (!this.#window.isAutomatic || rate < next.bandwidth * SPARE) {
      this.#calm = Math.min(this.#calm * 2, LONGEST_CALM);
      this.#isCalmAgain();
      return;
    }
    await this.#window.choose(next.name);
    this.#changed();
    this.#raisedAt = this.#changedAt;
  }

  #changed() {
    this.#throughput.reset();
    this.#changedAt = this.#calmSince = performance.now();
  }

  #isCalmAgain() { this.#calmSince = performance.now(); }
}

/** @typedef {import("./live-window.js").Quality} Quality */

/** @param {Quality[]} qualities @param {number} rate Bits per second. @returns {Quality} The best of them, or the least. */
function affordable(qualities, rate) {
  const sorted = [...qualities].sort((a, b) => a.bandwidth - b.bandwidth);
  return sorted.findLast((q) => q.bandwidth <= rate) ?? sorted[0];
}

/** @param {Quality[]} qualities @param {Quality} present @returns {Quality | null} The next better one. */
function better(qualities, present) {
  const sorted = [...qualities].sort((a, b) => a.bandwidth - b.bandwidth);
  return sorted.find((q) => q.bandwidth > present.bandwidth) ?? null;
}

/**
 * Fetches the newest whole segment of a picture, beside what is being played.
 * @param {Quality} quality
 * @returns {Promise<number>} Bits per second; 0 where it took longer than it lasts.
 */
async function trial({ url }) {
  const signal = timeout(TIMEOUT_MILLISECONDS);
  const response = await fetch(url, { cache: "no-store", signal });
  if (!response.ok) throw await HTTPFailure.of(response);
  const segment = parseMedia(await response.text(), url).segments.findLast((s) => s.complete && !s.gap);
  if (segment === undefined) throw new Error("this quality has no segment yet");
  const began = performance.now();
  const enough = timeout(Math.max(segment.duration, 0.5) * 1000);
  try {
    const bytes = await fetchBytes(segment, anySignal(signal, enough));
    return bytes.length * 8000 / Math.max(performance.now() - began, 1);
  } catch (error) {
    if (enough.aborted) return 0;
    throw error;
  }
}
