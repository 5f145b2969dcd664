/** The link to the newest finished recording of a stream, shown when nothing is live. */

import { fetchOverview, fetchRecordings } from "../api/api.js";
import { base } from "../media/root.js";
import { byId } from "../ui/dom.js";
import { isOwnFile } from "../ui/links.js";

/** Polling interval. A recording is finished shortly after its stream has ended. */
const ASK_MILLISECONDS = 3000;
/** After this many requests the interval is longer. */
const EAGER_QUESTIONS = 5;
const ASK_LATER_MILLISECONDS = 60_000;

export class LastRecording {
  #link = byId("message-recording", HTMLAnchorElement);
  #name;
  /** Whether this server records; null while unknown. */
  #records = /** @type {boolean | null} */ (null);
  #questions = 0;
  #askedAt = -Infinity;

  /** @param {string} name Name of the stream. */
  constructor(name) { this.#name = name; }

  /** @param {import("../engine/session.js").Phase} phase */
  refresh(phase) {
    if (phase !== "ended" && phase !== "notStarted") {
      this.#link.hidden = true;
      [this.#questions, this.#askedAt] = [0, -Infinity];
      return;
    }
    const now = performance.now();
    const pause = this.#questions < EAGER_QUESTIONS ? ASK_MILLISECONDS : ASK_LATER_MILLISECONDS;
    if (this.#records === false || document.hidden || !this.#link.hidden || now - this.#askedAt < pause) return;
    this.#askedAt = now;
    this.#questions += 1;
    this.#ask();
  }

  async #ask() {
    try {
      this.#records ??= (await fetchOverview()).records !== false;
      if (!this.#records) return;
      const { recordings: [newest] } = await fetchRecordings({ stream: this.#name, state: "completed", limit: 1 });
      // The stream may have begun meanwhile.
      if (!newest || !isOwnFile(newest.url) || this.#questions === 0) return;
      this.#link.href = `${base}/recordings?${new URLSearchParams({ stream: this.#name, play: newest.file })}`;
      this.#link.hidden = false;
    } catch {
      // The next refresh repeats the request.
    }
  }
}
