/**
 * What a publisher does when its connection is in trouble: ICE begins again in the same session, or a new session goes on with
 * the stream. The server keeps a session that hears nothing for 20 s, and its stream for the reconnect window.
 */

/** @typedef {{kind: "restart" | "publish", afterMilliseconds: number}} Step */
/**
 * @typedef {"moved" | "unreachable" | "busy" | "refused"} Outcome What a request came to: ICE began again; no response, or the
 *   server has trouble; the name is taken or there is no room at present; it will not be taken as it is.
 */

const PAUSES = [0, 500, 1000, 2000, 3000, 5000];
/** A session that was not connected again by so many restarts is given up. */
const RESTARTS = 2;
/** The longest wait that a server may ask for. */
const LONGEST_PAUSE = 30_000;

/** @param {number | null} status Of a response; null if there was none. @returns {Outcome} */
export function outcomeOf(status) {
  if (status === null || status >= 500 || status === 408) return "unreachable";
  return status === 409 || status === 429 ? "busy" : "refused";
}

export class ReconnectPlan {
  #failures = 0;
  #restarts = 0;
  #isSessionLost = false;
  #pause = 0;

  /** The connection works. */
  connected() {
    this.#failures = this.#restarts = this.#pause = 0;
    this.#isSessionLost = false;
  }

  /** The session is over: the next one takes its place. */
  lost() { this.#isSessionLost = true; }

  /** The network has changed, so the next try need not wait. */
  hurry() { this.#failures = this.#pause = 0; }

  /** @returns {Step} The next thing to try. */
  get next() {
    const pause = Math.max(this.#pause, PAUSES[Math.min(this.#failures, PAUSES.length - 1)]);
    const isNew = this.#isSessionLost || this.#restarts >= RESTARTS;
    return { kind: isNew ? "publish" : "restart", afterMilliseconds: pause };
  }

  /**
   * @param {"restart" | "publish"} kind What was tried.
   * @param {number | null} status Of the response; null if there was none.
   * @param {number | null} [retryAfter] Seconds that the server asks to wait.
   * @returns {boolean} Whether to go on. A refusal of a new session is final.
   */
  tried(kind, status, retryAfter = null) {
    const outcome = status !== null && status < 300 ? "moved" : outcomeOf(status);
    this.#pause = Math.min((retryAfter ?? 0) * 1000, LONGEST_PAUSE);
    this.#failures += 1;
    if (kind === "restart") {
      if (outcome === "moved") this.#restarts += 1;
      // 404: it is over. 4xx: it takes no change, so it cannot be helped.
      else if (outcome !== "unreachable") {
        this.#isSessionLost = true;
        this.#failures = 0;
      }
      return true;
    }
    if (outcome === "moved") this.#isSessionLost = false;
    if (outcome === "moved") this.#restarts = 0;
    return outcome !== "refused";
  }
}
