/** How fast media come while they come: waiting for what is not made yet does not count. */

/** What is older says nothing of the connection as it is. */
const MEMORY_MILLISECONDS = 4000;
/** Fewer bytes than these are no measure: they fit into what a connection takes at once. */
const LEAST_BYTES = 20_000;
/** An arrival takes at least this long: a timer tells no less, and small pieces come in one. */
const LEAST_MILLISECONDS = 1;

export class Throughput {
  /** @type {{at: number, bytes: number, milliseconds: number}[]} */
  #arrivals = [];

  /**
   * @param {number} bytes That arrived.
   * @param {number} milliseconds Since the ones before them, or since the answer began.
   * @param {number} now
   */
  add(bytes, milliseconds, now = performance.now()) {
    this.#arrivals = this.#arrivals.filter((a) => now - a.at < MEMORY_MILLISECONDS);
    this.#arrivals.push({ at: now, bytes, milliseconds: Math.max(milliseconds, LEAST_MILLISECONDS) });
  }

  /** Nothing that was measured holds any more. */
  reset() { this.#arrivals = []; }

  /** @param {number} now @returns {number | null} Bits per second; null where nothing was measured of late. */
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
