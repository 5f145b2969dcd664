/** The recordings that are chosen in the gallery, and what is done with all of them at once. */

import { addressOf } from "../api/api.js";
import { many } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";
import { isOwnFile } from "../ui/links.js";

/** Browsers let a page start a few downloads, one shortly after another. */
const DOWNLOAD_MILLISECONDS = 400;

/** @typedef {import("../api/api.js").Recording} Recording */

export class Selection {
  #bar = byId("selection", HTMLElement);
  #count = byId("selection-count", HTMLElement);
  #download = byId("selection-download", HTMLButtonElement);
  #remove = byId("selection-delete", HTMLButtonElement);
  /** @type {Map<string, Recording>} */
  #chosen = new Map();
  #changed;

  /** @param {() => void} changed @param {(recordings: Recording[]) => void} remove */
  constructor(changed, remove) {
    this.#changed = changed;
    this.#download.addEventListener("click", () => download(this.#files));
    this.#remove.addEventListener("click", () => remove(this.#removable));
    byId("selection-clear", HTMLButtonElement).addEventListener("click", () => this.clear());
  }

  /** @param {Recording} recording */
  has(recording) { return this.#chosen.has(addressOf(recording)); }

  /** @param {Recording} recording @param {boolean} isChosen */
  set(recording, isChosen) {
    if (isChosen) this.#chosen.set(addressOf(recording), recording);
    else this.#chosen.delete(addressOf(recording));
    this.#changed();
  }

  /** @param {Recording[]} recordings */
  add(recordings) {
    for (const recording of recordings) this.#chosen.set(addressOf(recording), recording);
    this.#changed();
  }

  clear() {
    this.#chosen.clear();
    this.#changed();
  }

  get #files() { return [...this.#chosen.values()].filter((r) => isOwnFile(r.url)); }
  get #removable() { return [...this.#chosen.values()].filter((r) => !r.protected && !r.deletedAt); }

  /**
   * Updates the bar.
   * @param {Recording[]} shown Those that are in the list. Others are not chosen any more.
   * @param {boolean} mayChange
   */
  refresh(shown, mayChange) {
    const there = new Map(shown.map((recording) => [addressOf(recording), recording]));
    for (const key of [...this.#chosen.keys()]) {
      const known = there.get(key);
      if (known === undefined) this.#chosen.delete(key);
      else this.#chosen.set(key, known);
    }
    this.#bar.hidden = this.#chosen.size === 0;
    setText(this.#count, many("selection.count", this.#chosen.size));
    this.#download.disabled = this.#files.length === 0;
    this.#remove.hidden = !mayChange;
    this.#remove.disabled = this.#removable.length === 0;
  }
}

/** @param {Recording[]} recordings */
async function download(recordings) {
  for (const recording of recordings) {
    const link = document.createElement("a");
    link.href = `${recording.url}?download`;
    link.download = "";
    link.click();
    await new Promise((resume) => setTimeout(resume, DOWNLOAD_MILLISECONDS));
  }
}
