/** The menu of pictures, where the server makes several of them: one of them, or whichever the connection carries. */

import { byId, make } from "./dom.js";
import * as format from "./format.js";

/** The menu's value for a choice that is left to the connection; no picture is called so. */
const AUTO = "auto";

export class QualityMenu {
  #session;
  #select = byId("quality", HTMLSelectElement);
  #shown = "";
  /** While a choice is on its way. */
  #isBusy = false;

  /** @param {import("./session.js").WatchSession} session */
  constructor(session) {
    this.#session = session;
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
  }

  refresh() {
    const { engine } = this.#session;
    const { qualities } = engine;
    this.#select.hidden = qualities.length < 2;
    const present = qualities.find((q) => q.name === engine.quality);
    const automatic = engine.isAutomatic && present !== undefined ? `Auto · ${height(present)}` : "Auto";
    const text = qualities.map((q) => `${q.name} ${label(q)}`).join();
    if (text !== this.#shown) {
      this.#shown = text;
      const options = qualities.map((q) => Object.assign(make("option", "", label(q)), { value: q.name }));
      this.#select.replaceChildren(Object.assign(make("option", "", automatic), { value: AUTO }), ...options);
    }
    const first = this.#select.options.item(0);
    if (first !== null && first.textContent !== automatic) first.textContent = automatic;
    if (!this.#isBusy) this.#select.value = engine.isAutomatic ? AUTO : engine.quality;
  }

  /** @param {string} value */
  async #choose(value) {
    const { engine } = this.#session;
    if (!("chooseQuality" in engine)) return;
    this.#isBusy = true;
    try {
      await engine.chooseQuality(value === AUTO ? null : value);
    } catch {
      // The picture stays what it was, and the menu says so.
    } finally {
      this.#isBusy = false;
      this.refresh();
    }
  }
}

/** @param {import("./window.js").Quality} quality */
function label(quality) {
  const { name, bandwidth } = quality;
  return `${height(quality)} · ${format.bitrate(bandwidth)}${name === "" ? " (source)" : ""}`;
}

/** @param {import("./window.js").Quality} quality */
function height({ name, size }) { return size === null ? name : `${Math.min(size.width, size.height)}p`; }
