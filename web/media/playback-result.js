/** How a try to play came to its end. */

/**
 * @typedef {object} PlaybackResult
 * @property {"finished" | "lost" | "newEpoch" | "refused" | "unplayable" | "tooShort" | "paused" | "stopped"} kind
 *   "newEpoch": the server has begun another epoch, whose segments and times are others.
 *   "paused": the viewer's pause has lasted so long that nothing more is downloaded for the edge.
 * @property {string} [reason]
 * @property {number} [status] HTTP status of a refusal.
 * @property {boolean} [isFull] Whether the server has no room for another viewer.
 * @property {number} [retryAfter] Seconds.
 * @property {string[]} [codecs] Those that this browser cannot play.
 */

/** What the server calls a stream that has a publisher and nothing to show yet: also a 503, but not a lack of room. */
const NOT_YET = "Not yet";
/** Seconds. Whoever asks for more patience may have made a mistake, and a timer has no room for any number. */
const LONGEST_WAIT = 600;

/** An answer without what was asked for. */
export class HTTPFailure extends Error {
  /** @param {Response} response @param {string} title What the server calls it. */
  constructor(response, title) {
    super(`the server responded with status ${response.status}`);
    this.status = response.status;
    /** Whether the server has no room for another viewer. */
    this.isFull = response.status === 503 && title !== NOT_YET;
    /** Seconds. */
    this.retryAfter = Math.min(Number(response.headers.get("retry-after")) || 0, LONGEST_WAIT);
  }

  /** @param {Response} response @returns {Promise<HTTPFailure>} */
  static async of(response) {
    return new HTTPFailure(response, response.status === 503 ? await titleOf(response) : "");
  }

  /** Milliseconds for which the server does not want to be asked again: it is full, or was asked too often. */
  get retryDelay() { return this.isFull || this.status === 429 ? this.retryAfter * 1000 : 0; }

  /** Whether what was asked for is no more there. */
  get isGone() { return this.status === 404 || this.status === 410; }
}

/** @param {Response} response With a problem (RFC 9457), or with anything. @returns {Promise<string>} */
async function titleOf(response) {
  try {
    return String((await response.json()).title);
  } catch {
    return "";
  }
}

/** @param {Response} response @returns {Promise<PlaybackResult>} */
export async function refusal(response) { return refused(await HTTPFailure.of(response)); }

/** @param {HTTPFailure} failure @returns {PlaybackResult} */
const refused = ({ status, isFull, retryAfter }) => ({ kind: "refused", status, isFull, retryAfter });

/** @param {any} error @returns {PlaybackResult} */
export function failure(error) {
  if (Array.isArray(error?.codecs)) return { kind: "unplayable", codecs: error.codecs };
  if (error instanceof HTTPFailure && error.isFull) return refused(error);
  return { kind: "lost", reason: String(error?.message ?? error) };
}
