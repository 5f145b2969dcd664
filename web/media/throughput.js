/** Throughput of media while it arrives. Time spent waiting for media that is not made yet does not count. */

/** Older measurements do not count. */
const MEMORY_MILLISECONDS = 4000;
/** Fewer bytes than this are not measured: they fit into one burst of a connection. */
const LEAST_BYTES = 20_000;
/** Minimum time of one arrival: the resolution of the timer. Small chunks arrive together. */
const LEAST_MILLISECONDS = 1;

export class Throughput {
  /** @type {{at: number, bytes: number, milliseconds: number}[]} */
  #arrivals = [];

  /**
   * @param {number} bytes Number of bytes that arrived.
   * @param {number} milliseconds Time since the previous chunk, or since the response began.
   * @param {number} now
   */
  add(bytes, milliseconds, now = performance.now()) {
    this.#arrivals = this.#arrivals.filter((a) => now - a.at < MEMORY_MILLISECONDS);
    this.#arrivals.push({ at: now, bytes, milliseconds: Math.max(milliseconds, LEAST_MILLISECONDS) });
  }

  /** Discards all measurements. */
  reset() { this.#arrivals = []; }

  /** @param {number} now @returns {number | null} Bits per second; null without recent measurements. */
  rate(now = performance.now()) {
    let bytes = 0, milliseconds = 0;
    for (const arrival of this.#arrivals) {
      if (now - arrival.at >= MEMORY_MILLISECONDS) continue;
      bytes += arrival.bytes;
      milliseconds += arrival.milliseconds;
    }
    return bytes < LEAST_BYTES ? null : bytes * 8000 / milliseconds;
  }
}
