/** The menu of subtitles and captions; hidden if the stream has none. */

import { t } from "../strings/strings.js";
import { byId, make } from "./dom.js";

/** @param {TextTrack} track */
const isShown = (track) => track.kind === "subtitles" || track.kind === "captions";

export class CaptionsMenu {
  #tracks;
  #select;

  /** @param {HTMLVideoElement} video @param {import("./dom.js").Root} root */
  constructor(video, root = document) {
    this.#select = byId("captions", HTMLSelectElement, root);
    this.#tracks = video.textTracks;
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
    for (const event of ["addtrack", "removetrack", "change"]) {
      this.#tracks.addEventListener(event, () => this.#refresh());
    }
    this.#refresh();
  }

  /** Turns captions off, or on in the first language. */
  toggle() {
    if (this.#select.hidden) return;
    this.#choose(this.#select.value === "" ? this.#select.options[1].value : "");
  }

  /** @param {string} index Index of the track; "" for none. */
  #choose(index) {
    [...this.#tracks].forEach((track, n) => {
      if (isShown(track)) track.mode = String(n) === index ? "showing" : "disabled";
    });
    this.#refresh();
  }

  #refresh() {
    const tracks = [...this.#tracks];
    const options = [Object.assign(make("option", "", t("captions.none")), { value: "" })];
    tracks.forEach((track, n) => {
      if (!isShown(track)) return;
      options.push(Object.assign(make("option", "", track.label || track.language || t("captions.number", { number: n + 1 })), { value: String(n) }));
    });
    this.#select.replaceChildren(...options);
    this.#select.hidden = options.length === 1;
    this.#select.value = String(tracks.findIndex((track) => isShown(track) && track.mode === "showing")).replace("-1", "");
  }
}
