/** What the watch page tells of the stream's recording, and the buttons that change it. */

import { change, hasToken } from "./admin.js";
import { fetchStorage } from "./api.js";
import { announce, byId, setText } from "./dom.js";
import * as format from "./format.js";
import { showGaps } from "./gaps.js";
import { recordingButtons } from "./recordingbuttons.js";

/** @typedef {import("./api.js").Stream} Stream */
/** @typedef {import("./admindialog.js").AdminDialog} AdminDialog */

const RETRY_MILLISECONDS = 5000;
/** What the server said to a click stays for so long. */
const ANSWER_MILLISECONDS = 15_000;

const STATES = {
  none: "Not recorded", idle: "Waiting for a key frame", running: "Recording", completed: "Stored",
  failed: "Interrupted", cancelled: "Thrown away",
};
const DONE = { start: "Recording", stop: "Recording stopped", cancel: "Recording thrown away" };

export class RecordPanel {
  #panel = byId("recording", HTMLElement);
  #badge = byId("recording-state", HTMLElement);
  #figures = byId("recording-figures", HTMLElement);
  #reason = byId("recording-reason", HTMLElement);
  #gaps = byId("recording-gaps", HTMLElement);
  #manage = byId("manage", HTMLButtonElement);
  #name;
  #session;
  #buttons;
  #admin;
  /** @type {import("./api.js").Storage | null} Null while unknown, and where nothing is recorded. */
  #storage = null;
  /** @type {string | null} Why the last click did nothing. */
  #answer = null;
  #answeredAt = -Infinity;

  /**
   * @param {string} name Of the stream.
   * @param {import("./session.js").WatchSession} session
   * @param {AdminDialog} admin
   */
  constructor(name, session, admin) {
    this.#name = name;
    this.#session = session;
    this.#buttons = recordingButtons(name, (action) => this.#control(action));
    this.#admin = admin;
    this.#manage.before(this.#buttons.element);
    const link = byId("recording-all", HTMLAnchorElement);
    link.href = `/recordings?stream=${encodeURIComponent(name)}`;
    this.#ask();
  }

  async #ask() {
    try {
      this.#storage = await fetchStorage();
      this.refresh();
    } catch {
      setTimeout(() => this.#ask(), RETRY_MILLISECONDS);
    }
  }

  /** @param {import("./recordingbuttons.js").RecordingAction} action */
  async #control(action) {
    this.#answer = null;
    try {
      await change("POST", `/api/v1/streams/${encodeURIComponent(this.#name)}/recording/${action}`);
      announce(DONE[action]);
    } catch (error) {
      this.#answer = error instanceof Error ? error.message : "That did not work.";
      this.#answeredAt = performance.now();
      this.#admin.refresh();
      if (!hasToken()) this.#admin.open();
    }
    await this.#session.retry();
    this.refresh();
  }

  /** Shows what is. */
  refresh() {
    const { stream } = this.#session;
    // A source of weir's own is never recorded.
    this.#panel.hidden = this.#storage === null || stream === null || stream.protocol === "test";
    if (this.#panel.hidden || stream === null) return;
    const recording = stream.recording ?? null;
    const state = recording?.state ?? "none";
    this.#badge.dataset.state = state === "running" ? "live" : state === "completed" || state === "failed" ? state : "ended";
    setText(this.#badge, STATES[state] ?? state);
    const hasFigures = recording !== null && recording.bytes > 0 && state !== "cancelled";
    setText(this.#figures, hasFigures ? `${format.duration(recording.seconds)} · ${format.size(recording.bytes)}` : "");
    if (performance.now() - this.#answeredAt > ANSWER_MILLISECONDS) this.#answer = null;
    const reason = this.#answer ?? reasonOf(recording);
    this.#reason.hidden = reason === null;
    setText(this.#reason, reason ?? "");
    showGaps(this.#gaps, state === "cancelled" ? [] : recording?.gaps ?? []);

    this.#manage.hidden = !this.#storage?.writable;
    const mayChange = hasToken() && this.#storage?.writable === true;
    const isActive = ["idle", "running", "failed"].includes(state);
    const isLive = stream.state === "live" || stream.state === "reconnecting";
    this.#buttons.allow(mayChange && isLive && state !== "running" && state !== "idle", mayChange && isActive && isLive);
  }
}

/** @param {import("./api.js").StreamRecording | null} recording @returns {string | null} */
function reasonOf(recording) {
  if (recording === null) return null;
  if (recording.state === "failed") return `Interrupted: ${recording.reason ?? "no reason is known"}`;
  return recording.reason;
}
