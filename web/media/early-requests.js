/**
 * The first requests of a watch page or an embedded player's page, sent while the player's scripts still load: the state of
 * the stream and its multivariant playlist. The scripts take the responses from here.
 */

import { base, isOurs } from "./root.js";

/** An older response may be outdated. */
const FRESH_MILLISECONDS = 3000;
const TIMEOUT_MILLISECONDS = 8000;

/**
 * Query of a playlist that may begin with parts before the first segment is whole, where the server knows the distance of key
 * frames. Otherwise the playlist is the same as without it.
 */
export const PARTS_FIRST = "?start=parts";

/**
 * Query by which the state of a stream is asked for: what a page waits for, up to a second. Without a stream the answer is 204:
 * browsers write each 404 to their console.
 */
export const UNTIL = "until=";

/** @type {Map<string, {at: number, response: Promise<Response>}>} Responses by URL. */
const early = new Map();

const [, page, name] = globalThis.location?.pathname.slice(base.length).split("/") ?? [];
// A player that waits for a click has loaded nothing but a picture until then.
const waits = page === "embed" && new URLSearchParams(globalThis.location?.search).get("autoplay") === "0";
if (isOurs && !waits && (page === "watch" || page === "embed") && name) {
  // The first request uses the connection that delivered the page.
  const paths = { [`index.m3u8${PARTS_FIRST}`]: `&${UNTIL}now`, [`status.json?${UNTIL}now`]: "" };
  for (const [path, further] of Object.entries(paths)) {
    const url = whole(`${base}/live/${name}/${path}`);
    const signal = /** @type {any} */ (AbortSignal).timeout(TIMEOUT_MILLISECONDS);
    const response = fetch(url + further, { cache: "no-store", signal });
    // The error is reported where the response is used.
    response.catch(() => {});
    early.set(url, { at: performance.now(), response });
  }
}

/**
 * @param {string} url
 * @param {AbortSignal} signal
 * @param {boolean} isThere Whether the stream is known to exist now: then an early response that says otherwise is outdated.
 * @returns {Promise<Response>} The early response, once; later calls send a new request.
 */
export async function fetchOnce(url, signal, isThere = false) {
  const known = early.get(whole(url));
  early.delete(whole(url));
  if (known !== undefined && performance.now() - known.at < FRESH_MILLISECONDS) {
    const response = await known.response;
    if (!isThere || response.status !== 404 && response.status !== 204) return response;
    response.body?.cancel();
  }
  return fetch(url, { cache: "no-store", signal });
}

/** @param {string} url @returns {string} The absolute URL. */
function whole(url) { return new URL(url, globalThis.location?.href).href; }
