/** How a try to play came to its end. */

/**
 * @typedef {object} Ending
 * @property {"finished" | "lost" | "refused" | "unplayable" | "tooShort" | "paused" | "stopped"} kind
 *   "paused": the viewer's pause has lasted so long that nothing more is downloaded for the edge.
 * @property {string} [reason]
 * @property {number} [status] HTTP status of a refusal.
 * @property {number} [retryAfter] Seconds.
 * @property {string[]} [codecs] Those that this browser cannot play.
 */

/** @param {Response} response @returns {Ending} */
export function refusal(response) {
  const retryAfter = Number(response.headers.get("retry-after")) || 0;
  return { kind: "refused", status: response.status, retryAfter };
}

/** @param {any} error @returns {Ending} */
export function failure(error) {
  if (Array.isArray(error?.codecs)) return { kind: "unplayable", codecs: error.codecs };
  return { kind: "lost", reason: String(error?.message ?? error) };
}
