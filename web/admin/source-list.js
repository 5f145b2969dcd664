/** The server's own sources on the home page, with their state and buttons. It needs the admin token. */

import { change, hasToken } from "../api/admin.js";
import { base } from "../media/early-requests.js";
import { confirmButton } from "../ui/confirm-button.js";
import { announce, byId, make, setText } from "../ui/dom.js";
import { OFF_AIR, SOURCE_KINDS, SOURCE_STATES, sourceBadge } from "./source-names.js";

/** @typedef {import("../api/api.js").OwnSource} OwnSource */
/** @typedef {"start" | "preview" | "stop"} SourceAction */

const DONE = { start: "on air", preview: "off air", stop: "stopped" };
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
    /** @type {OwnSource[]} */
    let sources = [];
    if (hasToken()) sources = (await change("GET", "/api/v1/sources").catch(() => ({ sources: [] }))).sources;
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
      await change("POST", `/api/v1/sources/${encodeURIComponent(name)}/${action}`);
      announce(`${name} ${DONE[action]}`);
    } catch (error) {
      answer = error instanceof Error ? error.message : "The request failed.";
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
  const recording = make("span", "badge", "Recording");
  const kind = make("span", "source-kind");
  let isLive = false;
  const start = button("Go live", `Go live with ${name}`);
  const preview = button("Preview", `Preview ${name}`);
  const stop = button("Stop", `Stop ${name}`);
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
    /** @param {OwnSource} source */
    update(source) {
      badge.dataset.state = sourceBadge(source.state);
      setText(badge, SOURCE_STATES[source.state]);
      recording.hidden = source.recording?.state !== "running";
      setText(kind, SOURCE_KINDS[source.kind]);
      isLive = source.state === "live";
      start.hidden = isLive;
      previewWord.setWord(isLive ? OFF_AIR : "Preview");
      preview.setAttribute("aria-label", isLive ? `Take ${name} off air` : `Preview ${name}`);
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
