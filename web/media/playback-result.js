/** The result of one attempt to play. */

/**
 * @typedef {object} PlaybackResult
 * @property {"finished" | "lost" | "newEpoch" | "refused" | "unplayable" | "tooShort" | "paused" | "stopped"} kind
 *   "newEpoch": the server has begun another epoch, with other segment numbers and times.
 *   "paused": the viewer has paused for so long that nothing more is downloaded at the edge.
 * @property {string} [reason]
 * @property {string} [ending] Why the server ended the connection, in its own words; empty if it does not say.
 * @property {number} [status] HTTP status of a refusal.
 * @property {boolean} [isFull] Whether the server has no room for another viewer.
 * @property {number} [retryAfter] Seconds.
 * @property {string[]} [codecs] Codecs that this browser cannot play.
 */

/** Title of a 503 for a stream that has a publisher but no media yet. It does not mean that the server is full. */
const NOT_YET = "Not yet";
/** Upper limit of Retry-After in seconds. It also protects the timer from huge values. */
const LONGEST_WAIT = 600;

/** A response with an error status. */
export class HTTPFailure extends Error {
  /** @param {Response} response @param {string} title Title of the problem in the response. */
  constructor(response, title) {
    super(`the server responded with status ${response.status}`);
    this.status = response.status;
    /** Whether the server has no room for another viewer. */
    this.isFull = response.status === 503 && title !== NOT_YET;
    /** Value of Retry-After in seconds. */
    this.retryAfter = Math.min(Number(response.headers.get("retry-after")) || 0, LONGEST_WAIT);
  }

  /** @param {Response} response @returns {Promise<HTTPFailure>} */
  static async of(response) {
    return new HTTPFailure(response, response.status === 503 ? await titleOf(response) : "");
  }

  /** Milliseconds to wait before the next request: the server is full, or had too many requests. */
  get retryDelay() { return this.isFull || this.status === 429 ? this.retryAfter * 1000 : 0; }

  /** Whether the resource no longer exists. */
  get isGone() { return this.status === 404 || this.status === 410; }
}

/** @param {Response} response Its body may be a problem (RFC 9457). @returns {Promise<string>} */
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
