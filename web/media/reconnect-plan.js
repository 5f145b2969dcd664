/**
 * What a publisher does when its connection is in trouble: ICE begins again in the same session, or a new session goes on with
 * the stream. The server keeps a session that hears nothing for 20 s, and its stream for the reconnect window.
 */

/** @typedef {{kind: "restart" | "publish", afterMilliseconds: number}} Step */
/** @typedef {"closed" | "gone"} Ending How a session ended: the server closed it just now, or does not know it any more. */
/**
 * @typedef {"free" | "taken" | "ended" | "stopping" | "unseen"} Fate What became of a stream whose session is over: it waits for
 *   its publisher; another one has it; somebody ended it; the server is going down; its state is for viewers with a token.
 */
/**
 * @typedef {"moved" | "unreachable" | "busy" | "refused"} Outcome What a request came to: ICE began again; no response, or the
 *   server has trouble; the name is taken or there is no room at present; it will not be taken as it is.
 */

const PAUSES = [0, 500, 1000, 2000, 3000, 5000];
/** A session that was not connected again by so many restarts is given up. */
const RESTARTS = 2;
/** The longest wait that a server may ask for. */
const LONGEST_PAUSE = 30_000;

/** A name that so many new sessions in a row did not get is somebody else's. */
const TAKEN = 10;
/** Of a stream whose state is not shown, one new session in such a time. */
const UNSEEN_MILLISECONDS = 60_000;

/**
 * @param {Ending} ending Of this publisher's session.
 * @param {{state: string} | "hidden" | null} stream As the API has it now.
 * @param {boolean} isServerUp Whether the server takes publishers.
 * @returns {Fate}
 */
export function fateOf(ending, stream, isServerUp) {
  // It closes all sessions, and ends streams.
  if (!isServerUp) return "stopping";
  if (stream === "hidden") return "unseen";
  if (stream?.state === "live") return "taken";
  // The end of a stream whose session was gone for long may be that of the reconnect window.
  return stream?.state === "ended" && ending === "closed" ? "ended" : "free";
}

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
  #taken = 0;
  #unseenAt = -Infinity;
  /** @type {Ending | null} Null while the session may be there. */
  ending = null;

  /** The connection works. */
  connected() {
    this.#failures = this.#restarts = this.#pause = this.#taken = 0;
    this.#isSessionLost = false;
    this.ending = null;
  }

  /** The server has closed the session: the next one takes its place. */
  closed() {
    this.#isSessionLost = true;
    this.ending = "closed";
  }

  /**
   * Whether to go on by a new session. One that another publisher, or an administrator, has put an end to must not come back.
   * @param {Fate} fate
   * @param {number} now Milliseconds.
   */
  mayReplace(fate, now) {
    if (fate === "taken" || fate === "ended") return false;
    // The next look is at another moment: the server comes back, or others come.
    this.ending = "gone";
    if (fate !== "unseen") return true;
    if (now - this.#unseenAt < UNSEEN_MILLISECONDS) return false;
    this.#unseenAt = now;
    this.ending = null;
    return true;
  }

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
   * @returns {boolean} Whether to go on. A refusal of a new session is final, and so is a name that stays taken.
   */
  tried(kind, status, retryAfter = null) {
    const outcome = status !== null && status < 300 ? "moved" : outcomeOf(status);
    this.#pause = Math.min((retryAfter ?? 0) * 1000, LONGEST_PAUSE);
    this.#failures += 1;
    if (kind === "restart") {
      if (outcome === "moved") this.#restarts += 1;
      // 404, 410: it is over. 4xx: it takes no change, so it cannot be helped.
      else if (outcome !== "unreachable") {
        this.#isSessionLost = true;
        if (status === 404 || status === 410) this.ending = "gone";
        this.#failures = 0;
      }
      return true;
    }
    this.#taken = status === 409 ? this.#taken + 1 : 0;
    if (outcome === "moved") {
      this.#isSessionLost = false;
      this.#restarts = 0;
      this.ending = null;
    }
    return outcome !== "refused" && this.#taken < TAKEN;
  }
}
