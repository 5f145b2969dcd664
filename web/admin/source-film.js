/** The moving preview of a source: what it captures now, on air or off, for administrators. */

import { authorization } from "../api/admin.js";
import { LiveEdge } from "../engine/live-edge.js";
import { ProgressiveSource } from "../engine/progressive-source.js";
import { SourceBuffers } from "../engine/source-buffers.js";

const TICK_MILLISECONDS = 250;
const RETRY_MILLISECONDS = 1000;

export class SourceFilm {
  #video;
  #buffers;
  #edge;
  #source;
  /** @type {AbortController | null} Null while it is not wanted. */
  #wanted = null;
  /** This browser cannot play it: stills have to do. */
  #isUnplayable = false;

  /** @param {HTMLVideoElement} video @param {string} url */
  constructor(video, url) {
    this.#video = video;
    this.#buffers = new SourceBuffers(video, () => {});
    this.#edge = new LiveEdge(video);
    this.#source = new ProgressiveSource(video, url, { plays: true }, this.#buffers, this.#edge, authorization);
  }

  /** Whether it shows frames. */
  get isShown() { return this.#wanted !== null && this.#video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA; }

  /** @param {boolean} wanted Whether it is to be played. */
  want(wanted) {
    if (wanted === (this.#wanted !== null)) return;
    if (wanted && !this.#isUnplayable) {
      this.#wanted = new AbortController();
      this.#play(this.#wanted.signal);
    } else if (this.#wanted !== null) {
      this.#wanted.abort();
      this.#wanted = null;
      this.#buffers.detach();
    }
  }

  /** @param {AbortSignal} signal */
  async #play(signal) {
    const ticks = setInterval(() => {
      this.#edge.tick();
      // Each beginning attaches another source, which pauses the element.
      if (this.#video.paused && this.isShown) this.#video.play().catch(() => {});
    }, TICK_MILLISECONDS);
    for (let number = 0; !signal.aborted && !this.#isUnplayable; number += 1) {
      this.#edge.reset();
      const { kind } = await this.#source.run(String(number), signal);
      if (kind === "unplayable") this.#isUnplayable = true;
      else if (!signal.aborted) await new Promise((resume) => setTimeout(resume, RETRY_MILLISECONDS));
    }
    clearInterval(ticks);
    if (this.#isUnplayable) this.want(false);
  }
}
