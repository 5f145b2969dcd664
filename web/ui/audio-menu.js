/** The menu of audio tracks, if the stream has several: language and channels. */

import { t } from "../strings/strings.js";
import { announce, byId, make } from "./dom.js";

/** @typedef {import("../media/live-window.js").Audio} Audio */

export class AudioMenu {
  #session;
  #root;
  #select;
  #shown = "";
  /** Number of choices in progress. */
  #busy = 0;

  /** @param {import("../engine/session.js").WatchSession} session @param {import("./dom.js").Root} root */
  constructor(session, root = document) {
    this.#session = session;
    this.#root = root;
    this.#select = byId("audio", HTMLSelectElement, root);
    this.#select.addEventListener("change", () => this.#choose(this.#select.value));
  }

  refresh() {
    const { engine, phase } = this.#session;
    const { audios } = engine;
    this.#select.hidden = phase === "ended" || phase === "notStarted" || audios.length < 2;
    const text = audios.map((a) => `${a.name} ${a.language} ${a.channels}`).join();
    if (text !== this.#shown) {
      this.#shown = text;
      this.#select.replaceChildren(...audios.map((a) => Object.assign(make("option", "", label(a)), { value: a.name })));
    }
    if (this.#busy === 0) this.#select.value = engine.audio;
  }

  /** @param {string} name */
  async #choose(name) {
    const { engine } = this.#session;
    this.#busy += 1;
    try {
      await engine.chooseAudio(name);
    } catch (error) {
      // The audio stays the same, and the menu shows that.
      this.#session.lastFailure = `audio: ${error instanceof Error ? error.message : error}`;
      console.warn(this.#session.lastFailure);
      announce(t("player.audioMissing"), this.#root);
    } finally {
      this.#busy -= 1;
      this.refresh();
    }
  }
}

/** @param {Audio} audio */
function label({ name, language, channels }) {
  const shown = language === "" || language === "und" ? name : named(language) + (name.match(/ .*/)?.[0] ?? "");
  const speakers = { 1: t("audio.mono"), 2: t("audio.stereo"), 6: "5.1", 8: "7.1" }[Number(channels)] ?? "";
  return speakers === "" ? shown : `${shown} · ${speakers}`;
}

/** @param {string} language A tag. */
function named(language) {
  try {
    return new Intl.DisplayNames([...navigator.languages], { type: "language" }).of(language) ?? language;
  } catch {
    return language;
  }
}
