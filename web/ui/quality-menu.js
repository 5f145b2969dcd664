/**
 * The menu of qualities, if the stream has several: automatic, or one of them. The button shows a short name, because it is
 * narrow on phones. The list shows more.
 */

import { t } from "../strings/strings.js";
import { announce, byId, make, setText } from "./dom.js";
import * as format from "./format.js";

/** The menu's value for the automatic choice. No quality has this name. */
const AUTO = "auto";

export class QualityMenu {
  #session;
  #root;
  #select;
  #button;
  #shown = "";
  /** Number of choices in progress. */
  #busy = 0;
  /** @type {string | null} The last chosen quality, if it was not available. */
  #missing = null;

  /** @param {import("../engine/session.js").WatchSession} session @param {import("./dom.js").Root} root */
  constructor(session, root = document) {
    this.#session = session;
    this.#root = root;
    this.#select = byId("quality", HTMLSelectElement, root);
    this.#button = byId("quality-shown", HTMLElement, root);
    this.#select.addEventListener("change", () => {
      this.#choose(this.#select.value);
      this.refresh();
    });
  }

  refresh() {
    const { engine } = this.#session;
    const { qualities } = engine;
    const isOver = this.#session.phase === "ended" || this.#session.phase === "notStarted";
    this.#select.hidden = isOver || qualities.length < 2;
    const present = qualities.find((q) => q.name === engine.quality);
    const automatic = engine.isAutomatic && present !== undefined ? t("quality.autoOf", { quality: height(present) }) : t("quality.auto");
    const labels = qualities.map((q) => label(q) + (q.name === this.#missing ? t("quality.missing") : ""));
    const text = qualities.map((q, n) => `${q.name} ${labels[n]}`).join();
    if (text !== this.#shown) {
      this.#shown = text;
      const options = qualities.map((q, n) => Object.assign(make("option", "", labels[n]), { value: q.name }));
      const { value } = this.#select;
      this.#select.replaceChildren(Object.assign(make("option", "", automatic), { value: AUTO }), ...options);
      this.#select.value = value;
    }
    const first = this.#select.options.item(0);
    if (first !== null && first.textContent !== automatic) first.textContent = automatic;
    if (this.#busy === 0) this.#select.value = engine.isAutomatic ? AUTO : engine.quality;
    const chosen = qualities.find((q) => q.name === this.#select.value);
    setText(this.#button, chosen === undefined ? automatic : height(chosen));
  }

  /** @param {string} value */
  async #choose(value) {
    const { engine } = this.#session;
    this.#busy += 1;
    this.#missing = null;
    try {
      await engine.chooseQuality(value === AUTO ? null : value);
    } catch (error) {
      // The quality stays the same, and the menu shows that.
      this.#missing = value;
      this.#session.lastFailure = `quality: ${error instanceof Error ? error.message : error}`;
      console.warn(this.#session.lastFailure);
      announce(t("player.qualityMissing"), this.#root);
    } finally {
      this.#busy -= 1;
      this.refresh();
    }
  }
}

/** @param {import("../media/live-window.js").Quality} quality */
function label(quality) {
  const { name, bandwidth } = quality;
  return `${height(quality)} · ${format.bitrate(bandwidth)}${name === "" ? t("quality.source") : ""}`;
}

/** @param {import("../media/live-window.js").Quality} quality */
function height({ name, size }) { return size === null ? name : `${Math.min(size.width, size.height)}p`; }
