/** Requests for media, and pauses, that can be aborted by a signal. */

import { HTTPFailure } from "./playback-result.js";

// Debian's TypeScript does not know these functions yet.
const Signals = /** @type {{any(signals: AbortSignal[]): AbortSignal, timeout(milliseconds: number): AbortSignal}} */ (
  /** @type {unknown} */ (AbortSignal));

/** @param {AbortSignal[]} signals @returns {AbortSignal} Aborts as soon as one of them does. */
export const anySignal = (...signals) => Signals.any(signals);

/** @param {number} milliseconds @returns {AbortSignal} Aborts after this time. */
export const timeout = (milliseconds) => Signals.timeout(milliseconds);

/**
 * @param {import("./playlist.js").Resource} resource
 * @param {AbortSignal} signal
 * @param {import("./throughput.js").Throughput | null} [throughput] Measures how fast the bytes arrive.
 * @returns {Promise<Uint8Array>}
 */
export async function fetchBytes({ url, range }, signal, throughput = null) {
  const headers = /** @type {Record<string, string>} */ (range === null ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` });
  const response = await fetch(url, { headers, signal });
  if (!response.ok) throw await HTTPFailure.of(response);
  if (throughput === null || response.body === null) return new Uint8Array(await response.arrayBuffer());
  return measured(response.body, throughput);
}

/** @param {ReadableStream<Uint8Array>} body @param {import("./throughput.js").Throughput} throughput */
async function measured(body, throughput) {
  const reader = body.getReader();
  const pieces = [];
  let length = 0, before = performance.now();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const now = performance.now();
    throughput.add(value.length, now - before, now);
    before = now;
    pieces.push(value);
    length += value.length;
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
export function pause(milliseconds, signal) {
  return new Promise((resume) => {
    if (signal.aborted) return resume();
    const done = () => { clearTimeout(timer); signal.removeEventListener("abort", done); resume(); };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
