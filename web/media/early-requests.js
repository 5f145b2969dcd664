/**
 * The first requests of a watch page, made while the player's scripts are still on their way: how the stream is, and its
 * multivariant playlist. Who needs one of these answers takes it from here.
 */

/** An answer that has waited longer may be outdated. */
const FRESH_MILLISECONDS = 3000;
const TIMEOUT_MILLISECONDS = 8000;

/** @type {Map<string, {at: number, response: Promise<Response>}>} By URL. */
const early = new Map();

const [, page, name] = globalThis.location?.pathname.split("/") ?? [];
if (page === "watch" && name) {
  // The first of them goes out on the connection that brought the page.
  for (const url of [`/live/${name}/index.m3u8`, `/api/v1/streams/${name}`]) {
    const signal = /** @type {any} */ (AbortSignal).timeout(TIMEOUT_MILLISECONDS);
    const response = fetch(url, { cache: "no-store", signal });
    // Who takes it sees what went wrong.
    response.catch(() => {});
    early.set(url, { at: performance.now(), response });
  }
}

/**
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<Response>} The early answer, once; otherwise that to a new request.
 */
export function fetchOnce(url, signal) {
  const known = early.get(url);
  early.delete(url);
  if (known !== undefined && performance.now() - known.at < FRESH_MILLISECONDS) return known.response;
  return fetch(url, { cache: "no-store", signal });
}
