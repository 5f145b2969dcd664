/** The server's own sources on the home page, with their state and buttons. It needs the admin token. */

import { change, hasToken } from "../api/admin.js";
import { base, root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { confirmButton } from "../ui/confirm-button.js";
import { announce, byId, make, setText } from "../ui/dom.js";
import { sourceBadge } from "./source-names.js";

/** @typedef {import("../api/api.js").LocalSource} LocalSource */
/** @typedef {"start" | "preview" | "stop"} SourceAction */

/** How long the server's response to a click is shown. */
const ANSWER_MILLISECONDS = 15_000;

export class SourceList {
  #section = byId("sources", HTMLElement);
  #list = byId("sources-list", HTMLElement);
  #changed;
  /** @type {Map<string, ReturnType<typeof row>>} */
  #rows = new Map();

  /** @param {() => void} changed Called after each request, whether it succeeded or failed. */
  constructor(changed) { this.#changed = changed; }

  /** Fetches and shows the state of the sources. */
  async refresh() {
    /** @type {LocalSource[]} */
    let sources = [];
    if (hasToken()) sources = (await change("GET", `${root}/api/v1/sources`).catch(() => ({ sources: [] }))).sources;
    this.#section.hidden = sources.length === 0;
    const names = new Set(sources.map((s) => s.name));
    for (const [name, shown] of this.#rows) {
      if (names.has(name)) continue;
      shown.element.remove();
      this.#rows.delete(name);
    }
    for (const source of sources) {
      const shown = this.#rows.get(source.name) ?? row(source.name, (action) => this.#control(source.name, action));
      if (!this.#rows.has(source.name)) this.#list.append(shown.element);
      this.#rows.set(source.name, shown);
      shown.update(source);
    }
  }

  /** @param {string} name @param {SourceAction} action */
  async #control(name, action) {
    let answer = null;
    try {
      await change("POST", `${root}/api/v1/sources/${encodeURIComponent(name)}/${action}`);
      announce(t(`source.${action}Done`, { name }));
    } catch (error) {
      answer = error instanceof Error ? error.message : t("page.failed");
    }
    this.#rows.get(name)?.answer(answer);
    await this.refresh();
    this.#changed();
  }
}

/** @param {string} name @param {(action: SourceAction) => void} control */
function row(name, control) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "", name));
  link.href = `${base}/watch/${encodeURIComponent(name)}`;
  const badge = make("span", "badge");
  const recording = make("span", "badge", t("state.recording"));
  const kind = make("span", "source-kind");
  let isLive = false;
  const start = button(t("source.goLive"), t("source.goLiveOf", { name }));
  const preview = button(t("source.preview"), t("source.previewOf", { name }));
  const stop = button(t("source.stop"), t("source.stopOf", { name }));
  start.addEventListener("click", () => control("start"));
  // These end the stream for all viewers, so they need a confirmation.
  const previewWord = confirmButton(preview, () => control("preview"), () => isLive);
  confirmButton(stop, () => control("stop"), () => isLive);
  const reason = make("p", "source-problem");
  const element = make(
    "li", "source-row", make("h3", "", link), badge, recording, kind, make("span", "source-buttons", start, preview, stop), reason);
  recording.dataset.state = "live";
  reason.setAttribute("role", "status");
  let answered = { text: /** @type {string | null} */ (null), at: -Infinity };
  return {
    element,
    /** @param {string | null} text The error message of the last click; null if it succeeded. */
    answer(text) { answered = { text, at: performance.now() }; },
    /** @param {LocalSource} source */
    update(source) {
      badge.dataset.state = sourceBadge(source.state);
      setText(badge, t(`sourceState.${source.state}`));
      recording.hidden = source.recording?.state !== "running";
      setText(kind, t(`source.${source.kind}`));
      isLive = source.state === "live";
      start.hidden = isLive;
      previewWord.setWord(t(isLive ? "source.offAir" : "source.preview"));
      preview.setAttribute("aria-label", t(isLive ? "source.offAirOf" : "source.previewOf", { name }));
      preview.hidden = source.state === "preview";
      stop.hidden = source.state === "stopped" || source.state === "stopping";
      const isFresh = performance.now() - answered.at < ANSWER_MILLISECONDS;
      const { video = null, audio = null } = source.capture ?? {};
      const text = (isFresh ? answered.text : null) ?? source.reason ?? video?.problem ?? audio?.problem
        ?? source.reception?.problem ?? "";
      reason.hidden = text === "";
      setText(reason, text);
    },
  };
}

/** @param {string} word @param {string} label */
function button(word, label) {
  const element = /** @type {HTMLButtonElement} */ (make("button", "button quiet", word));
  element.type = "button";
  element.setAttribute("aria-label", label);
  return element;
}
