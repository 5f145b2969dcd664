/** The address of a recording, or of a time in it, to hand on. */

import { t } from "../strings/strings.js";
import { announce, copyText, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { recordingLink } from "./recording-link.js";

const COPIED_MILLISECONDS = 2000;

export class ShareRecording {
  element;
  #video;
  #here = /** @type {HTMLInputElement} */ (make("input"));
  #hereWord = make("span");
  #code = make("code");
  #button = /** @type {HTMLButtonElement} */ (make("button", "button quiet", t("share.copy")));
  /** @type {import("../api/api.js").Recording | null} */
  #recording = null;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#video = video;
    this.#here.type = "checkbox";
    this.#here.id = "share-here";
    this.#here.addEventListener("change", () => this.refresh());
    this.#code.tabIndex = 0;
    this.#code.dir = "ltr";
    this.#button.type = "button";
    this.#button.id = "share-copy";
    this.#button.addEventListener("click", () => this.#copy());
    this.element = make("section", "share", make("div", "copy-text", this.#code),
      make("label", "share-here", this.#here, this.#hereWord), this.#button);
    this.element.setAttribute("aria-label", t("share.title"));
    video.addEventListener("timeupdate", () => this.refresh());
    video.addEventListener("seeked", () => this.refresh());
  }

  /** @param {import("../api/api.js").Recording | null} recording */
  open(recording) {
    this.#recording = recording;
    this.#here.checked = false;
    this.refresh();
  }

  refresh() {
    if (this.#recording === null) return;
    const place = Math.floor(this.#video.currentTime);
    setText(this.#hereWord, t("share.at", { time: format.duration(place) }));
    setText(this.#code, new URL(recordingLink(this.#recording, this.#here.checked ? place : null), location.origin).href);
  }

  async #copy() {
    this.refresh();
    const copied = await copyText(this.#code.textContent ?? "", this.#code);
    setText(this.#button, t(copied ? "copy.done" : "copy.press"));
    announce(t(copied ? "share.copied" : "share.selected"));
    setTimeout(() => setText(this.#button, t("share.copy")), COPIED_MILLISECONDS);
  }
}
