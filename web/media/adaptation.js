/**
 * Chooses the quality by the throughput of the connection. It goes down as soon as media arrives too slowly. It goes up only
 * after a calm time, and only to a quality of which one whole segment was fetched quickly enough as a trial.
 */

import { anySignal, fetchBytes, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMedia } from "./playlist.js";

/** Below this many times its own bit rate, a quality is about to stall. */
const TOO_SLOW = 1.2;
/** Share of the measured throughput that may be used after going down. */
const USED = 0.7;
/** A better quality must arrive at this many times its bit rate. */
const SPARE = 1.6;
/** Media that arrives at this many times its bit rate is not limited by the connection. */
const AMPLE = 2;
/** Time after a change without another one, in ms: media of the former quality may still be measured. */
const SETTLE = 4000;
/** Calm time before a better quality is tried, in ms. It doubles with each failed trial and each return. */
const FIRST_CALM = 8000;
const LONGEST_CALM = 120_000;
/** A better quality that lasts this long, in ms, counts as sustainable. */
const SUSTAINED = 30_000;
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
   * @param {import("./throughput.js").Throughput} throughput Throughput of the video.
   */
  constructor(window, throughput) {
    this.#window = window;
    this.#throughput = throughput;
  }

  /** Resets for a new publication: the measurement of its media starts anew, but the calm time remains as learned. */
  reset() {
    this.#throughput.reset();
    this.#calmSince = this.#changedAt = performance.now();
  }

  /** Must be called on a stall. It counts only if the connection was slow, not if the server had no media. */
  stalled() {
    const rate = this.#throughput.rate();
    if (rate === null || rate < (this.#present?.bandwidth ?? 0) * AMPLE) this.#isCalmAgain();
  }

  get #present() { return this.#window.qualities.find((q) => q.name === this.#window.quality); }

  /** Must be called a few times per second while media is fetched at the edge. */
  tick(now = performance.now()) {
    const { qualities } = this.#window;
    if (!this.#window.isAutomatic || this.#isBusy || qualities.length < 2 || !this.#window.isReady) return;
    const present = this.#present;
    if (present === undefined || now - this.#changedAt < SETTLE) return;
    const rate = this.#throughput.rate(now);
    if (now - this.#raisedAt > SUSTAINED && this.#raisedAt > 0) {
      this.#calm = FIRST_CALM;
      this.#raisedAt = -Infinity;
    }
    if (rate !== null && rate < present.bandwidth * TOO_SLOW) {
      this.#calmSince = now;
      const next = affordable(qualities, rate * USED);
      if (next.bandwidth < present.bandwidth) this.#work(() => this.#lower(next));
      return;
    }
    // If a rendition has no media now, the publisher's own quality may have.
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
      // The quality stays. A new trial comes later.
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

/** @param {Quality[]} qualities @param {number} rate Bits per second. @returns {Quality} The best that fits, or the lowest. */
function affordable(qualities, rate) {
  const sorted = [...qualities].sort((a, b) => a.bandwidth - b.bandwidth);
  return sorted.findLast((q) => q.bandwidth <= rate) ?? sorted[0];
}

/** @param {Quality[]} qualities @param {Quality} present @returns {Quality | null} The next better quality. */
function better(qualities, present) {
  const sorted = [...qualities].sort((a, b) => a.bandwidth - b.bandwidth);
  return sorted.find((q) => q.bandwidth > present.bandwidth) ?? null;
}

/**
 * Fetches the newest whole segment of a quality, beside the media that plays.
 * @param {Quality} quality
 * @returns {Promise<number>} Bits per second; 0 if it took longer than the segment lasts.
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
