/** The loudness of what is sent, and whether it is cut off because it is too loud. */

import { t } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";

const LEAST_DECIBELS = -60;
/** How long a peak that was cut off is told. */
const CLIPPING_MILLISECONDS = 2000;
/** A bar falls so many decibels in a second, so that it can be followed. */
const FALL_PER_SECOND = 40;
/** Screen readers are told seldom. */
const TOLD_MILLISECONDS = 1000;

export class LevelMeter {
  #audio;
  #meter = byId("level", HTMLElement);
  #clipping = byId("clipping", HTMLElement);
  #shown = LEAST_DECIBELS;
  #clippedAt = -Infinity;
  #drawnAt = 0;
  #toldAt = -Infinity;

  /** @param {import("./audio-source.js").AudioSource} audio */
  constructor(audio) {
    this.#audio = audio;
    requestAnimationFrame((now) => this.#draw(now));
  }

  /** @param {number} now */
  #draw(now) {
    const { decibels, isClipping } = this.#audio.level;
    const fall = FALL_PER_SECOND * (now - this.#drawnAt) / 1000;
    this.#drawnAt = now;
    this.#shown = Math.max(LEAST_DECIBELS, decibels, this.#shown - fall);
    if (isClipping) this.#clippedAt = now;
    this.#meter.style.setProperty("--level", String(1 - this.#shown / LEAST_DECIBELS));
    this.#clipping.hidden = now - this.#clippedAt > CLIPPING_MILLISECONDS;
    if (now - this.#toldAt > TOLD_MILLISECONDS) {
      this.#toldAt = now;
      this.#meter.setAttribute("aria-valuenow", String(Math.round(this.#shown)));
      this.#meter.setAttribute("aria-valuetext", t(this.#clipping.hidden ? "publish.level" : "publish.levelClipping", {
        decibels: Math.round(this.#shown) }));
      setText(this.#clipping, t("publish.clipping"));
    }
    requestAnimationFrame((next) => this.#draw(next));
  }
}
