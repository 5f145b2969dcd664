/**
 * The live pictures of the streams in view, one request after another. The pause follows from how long the server takes for one,
 * so a page costs a small share of a processor, however many streams it shows. A hidden page loads none.
 */

import { base } from "../media/root.js";
import { timeout } from "../media/fetching.js";

/** A picture is not renewed sooner than this. */
const SHORTEST_AGE_MILLISECONDS = 5000;
/** The share of the time in which a request may be waiting. */
const DUTY = 0.025;
/** Until every stream in view has a first picture. */
const FIRST_PAUSE_MILLISECONDS = 250;
const LONGEST_PAUSE_MILLISECONDS = 5000;
const TIMEOUT_MILLISECONDS = 8000;
/** After a failure a stream waits for so much longer: its picture may never come. */
const REST_MILLISECONDS = 30_000;
/** Of the picture that is kept for a card. */
const WIDTH = 320;

/**
 * @typedef {object} Picture
 * @property {HTMLCanvasElement} canvas
 * @property {string} name
 * @property {number} at When it was requested last; -Infinity before the first time.
 * @property {string | null} tag The ETag of what is shown.
 */

export class LivePictures {
  /** @type {Map<Element, Picture>} The cards in view. */
  #inView = new Map();
  #isRunning = false;
  /** @type {(name: string) => boolean} */
  #hasPicture;

  /** @param {(name: string) => boolean} hasPicture Whether a stream is live and has video. */
  constructor(hasPicture) {
    this.#hasPicture = hasPicture;
    document.addEventListener("visibilitychange", () => this.#run());
  }

  /** @param {Element} card @param {Picture} picture */
  show(card, picture) {
    this.#inView.set(card, picture);
    this.#run();
  }

  /** @param {Element} card */
  hide(card) { this.#inView.delete(card); }

  async #run() {
    if (this.#isRunning) return;
    this.#isRunning = true;
    while (!document.hidden && this.#inView.size > 0) {
      const began = performance.now();
      const next = this.#oldest(began);
      if (next !== null) await load(next);
      const isFirst = [...this.#inView.values()].some((p) => p.at === -Infinity && this.#hasPicture(p.name));
      const pause = Math.min(LONGEST_PAUSE_MILLISECONDS, (performance.now() - began) / DUTY);
      await new Promise((resume) => setTimeout(resume, isFirst ? FIRST_PAUSE_MILLISECONDS : Math.max(pause, 1000)));
    }
    this.#isRunning = false;
  }

  /** @param {number} now @returns {Picture | null} The picture in view that was requested first; null while all are new. */
  #oldest(now) {
    let oldest = null;
    for (const picture of this.#inView.values()) {
      if (!this.#hasPicture(picture.name) || now - picture.at < SHORTEST_AGE_MILLISECONDS) continue;
      if (oldest === null || picture.at < oldest.at) oldest = picture;
    }
    return oldest;
  }
}

/** @param {Picture} picture */
async function load(picture) {
  picture.at = performance.now();
  try {
    const response = await fetch(
      `${base}/live/${encodeURIComponent(picture.name)}/thumbnail.jpg`, { signal: timeout(TIMEOUT_MILLISECONDS) });
    const tag = response.headers.get("ETag");
    // 503: the server makes other pictures just now.
    if (!response.ok && response.status !== 503) picture.at += REST_MILLISECONDS;
    if (!response.ok || (tag !== null && tag === picture.tag)) return;
    const image = await createImageBitmap(await response.blob());
    const { canvas } = picture;
    const width = Math.min(WIDTH, image.width);
    canvas.width = width;
    canvas.height = Math.max(1, Math.round((width * image.height) / image.width));
    canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
    image.close();
    canvas.hidden = false;
    picture.tag = tag;
  } catch {
    // The picture stays as it is until its next turn.
  }
}
