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
 * @param {string} url
 * @param {"now" | "starting" | "live"} until The server holds a request for the state of a stream until it is so far, for a second at
 *   most. Without a stream it answers with 204: browsers write each 404 to their console.
 * @returns {Record<string, string>} Fields that say so. None for another server: browsers would ask it for leave first.
 */
export const fieldsUntil = (url, until) =>
  new URL(url, globalThis.location?.href).origin === globalThis.location?.origin ? { "Weir-Until": until } : {};

/** @type {Map<string, {at: number, response: Promise<Response>}>} Responses by URL. */
const early = new Map();

const [, page, name] = globalThis.location?.pathname.slice(base.length).split("/") ?? [];
// A player that waits for a click has loaded nothing but a picture until then.
const waits = page === "embed" && new URLSearchParams(globalThis.location?.search).get("autoplay") === "0";
if (isOurs && !waits && (page === "watch" || page === "embed") && name) {
  // The first request uses the connection that delivered the page.
  for (const path of [`index.m3u8${PARTS_FIRST}`, "status.json"]) {
    const url = whole(`${base}/live/${name}/${path}`);
    const signal = /** @type {any} */ (AbortSignal).timeout(TIMEOUT_MILLISECONDS);
    const response = fetch(url, { cache: "no-store", headers: fieldsUntil(url, "now"), signal });
    // The error is reported where the response is used.
    response.catch(() => {});
    early.set(url, { at: performance.now(), response });
  }
}

/** @param {string} url @returns {boolean} Whether `fetchOnce` has an early response to it, so that it would send no request. */
export const isEarly = (url) => performance.now() - (early.get(whole(url))?.at ?? -Infinity) < FRESH_MILLISECONDS;

/**
 * @param {string} url
 * @param {AbortSignal} signal
 * @param {boolean} isThere Whether the stream is known to exist now: then an early response that says otherwise is outdated.
 * @param {Record<string, string>} headers Of a new request.
 * @returns {Promise<Response>} The early response, once; later calls send a new request.
 */
export async function fetchOnce(url, signal, isThere = false, headers = {}) {
  const known = early.get(whole(url));
  early.delete(whole(url));
  if (known !== undefined && performance.now() - known.at < FRESH_MILLISECONDS) {
    const response = await known.response;
    if (!isThere || response.status !== 404 && response.status !== 204) return response;
    response.body?.cancel();
  }
  return fetch(url, { cache: "no-store", headers, signal });
}

/** @param {string} url @returns {string} The absolute URL. */
function whole(url) { return new URL(url, globalThis.location?.href).href; }
