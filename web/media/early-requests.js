/**
 * The first requests of a watch page, sent while the player's scripts still load: the state of the stream and its
 * multivariant playlist. The scripts take the responses from here.
 */

/** An older response may be outdated. */
const FRESH_MILLISECONDS = 3000;
const TIMEOUT_MILLISECONDS = 8000;

/** @type {Map<string, {at: number, response: Promise<Response>}>} Responses by URL. */
const early = new Map();

/** What paths on this server begin with: the viewer's token, if the page's own path has one. */
export const base = /^\/~[^/]*/.exec(globalThis.location?.pathname ?? "")?.[0] ?? "";

const [, page, name] = globalThis.location?.pathname.slice(base.length).split("/") ?? [];
if (page === "watch" && name) {
  // The first request uses the connection that delivered the page.
  for (const url of [`${base}/live/${name}/index.m3u8`, `${base}/api/v1/streams/${name}`]) {
    const signal = /** @type {any} */ (AbortSignal).timeout(TIMEOUT_MILLISECONDS);
    const response = fetch(url, { cache: "no-store", signal });
    // The error is reported where the response is used.
    response.catch(() => {});
    early.set(url, { at: performance.now(), response });
  }
}

/**
 * @param {string} url
 * @param {AbortSignal} signal
 * @returns {Promise<Response>} The early response, once; later calls send a new request.
 */
export function fetchOnce(url, signal) {
  const known = early.get(url);
  early.delete(url);
  if (known !== undefined && performance.now() - known.at < FRESH_MILLISECONDS) return known.response;
  return fetch(url, { cache: "no-store", signal });
}
