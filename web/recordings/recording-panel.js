/** The panel of the watch page for the recording of the stream, or of its source, with its buttons. */

import { change, hasToken } from "../api/admin.js";
import { fetchOverview, fetchStorage } from "../api/api.js";
import { base, root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { announce, byId, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { showGaps } from "./gaps.js";
import { recordingButtons } from "./recording-buttons.js";

/** @typedef {import("../api/api.js").Stream} Stream */
/** @typedef {import("../admin/admin-dialog.js").AdminDialog} AdminDialog */
/** @typedef {import("../api/api.js").StreamRecording} StreamRecording */
/** @typedef {import("./recording-buttons.js").RecordingAction} RecordingAction */

const RETRY_MILLISECONDS = 5000;
/** How long the server's response to a click is shown. */
const ANSWER_MILLISECONDS = 15_000;


/** @param {StreamRecording | null} recording */
const isActive = (recording) => ["idle", "running", "failed"].includes(recording?.state ?? "");
/** @param {Stream | null} stream */
const isLive = (stream) => ["live", "reconnecting", "offAir"].includes(stream?.state ?? "");

export class RecordingPanel {
  #panel = byId("recording", HTMLElement);
  #badge = byId("recording-state", HTMLElement);
  #figures = byId("recording-figures", HTMLElement);
  #reason = byId("recording-reason", HTMLElement);
  #gaps = byId("recording-gaps", HTMLElement);
  #order = byId("recording-order", HTMLElement);
  #orderName = byId("recording-name", HTMLInputElement);
  #orderTracks = byId("recording-tracks", HTMLSelectElement);
  #orderLimit = byId("recording-limit", HTMLSelectElement);
  #name;
  #session;
  #buttons;
  #admin;
  #publisher;
  /** @type {import("../api/api.js").Storage | null} Null while unknown, or if recording is off. */
  #storage = null;
  /** @type {string | null} Error message of the last click. */
  #answer = null;
  #answeredAt = -Infinity;

  /**
   * @param {string} name Name of the stream.
   * @param {import("../engine/session.js").WatchSession} session
   * @param {AdminDialog} admin
   * @param {import("../admin/source-panel.js").SourcePanel} publisher Panel of the source that publishes the stream, if any.
   */
  constructor(name, session, admin, publisher) {
    this.#name = name;
    this.#session = session;
    this.#buttons = recordingButtons(name, (action) => this.#control(action));
    this.#admin = admin;
    this.#publisher = publisher;
    const link = byId("recording-all", HTMLAnchorElement);
    link.after(this.#buttons.element);
    link.href = `${base}/recordings?stream=${encodeURIComponent(name)}`;
    this.#ask();
  }

  async #ask() {
    try {
      this.#storage = await fetchStorage(await fetchOverview());
      this.refresh();
    } catch {
      setTimeout(() => this.#ask(), RETRY_MILLISECONDS);
    }
  }

  /**
   * The recording to show: that of the stream, or that of its source, which runs on air and off. If the stream is not being
   * recorded, the source is.
   */
  get #subject() {
    const { stream } = this.#session;
    const { source } = this.#publisher;
    const ofStream = stream?.recording ?? null;
    const follows = source === null || (isActive(ofStream) && isLive(stream)) ? "streams" : "sources";
    return { follows, recording: follows === "streams" ? ofStream : source?.recording ?? ofStream };
  }

  /** The body of a request to start: the options, as JSON. */
  get #body() {
    const name = this.#orderName.value.trim();
    const duration = this.#orderLimit.value;
    const limits = duration === "" ? {} : { limits: { duration } };
    return JSON.stringify({ tracks: this.#orderTracks.value, ...limits, ...name === "" ? {} : { name } });
  }

  /** @param {RecordingAction} action */
  async #control(action) {
    this.#answer = null;
    try {
      const address = `${root}/api/v1/${this.#subject.follows}/${encodeURIComponent(this.#name)}/recording/${action}`;
      await change("POST", address, action === "start" ? this.#body : undefined);
      // The name was for this recording.
      if (action === "start") this.#orderName.value = "";
      announce(t(`recorded.${action}`));
    } catch (error) {
      this.#answer = error instanceof Error ? error.message : t("page.failed");
      this.#answeredAt = performance.now();
      this.#admin.refresh();
      if (!hasToken()) this.#admin.open();
    }
    await Promise.all([this.#session.retry(), this.#publisher.ask()]);
    this.refresh();
  }

  /** Updates the panel. */
  refresh() {
    const { stream } = this.#session;
    const { source } = this.#publisher;
    const isCaptured = source?.state === "live" || source?.state === "preview";
    // A test pattern, and a stream whose record mode is never, is not recorded.
    const kind = source?.kind ?? stream?.protocol;
    this.#panel.hidden = this.#storage === null || kind === "test" || (stream === null && !isCaptured);
    if (this.#panel.hidden) return;
    const { follows, recording } = this.#subject;
    const state = recording?.state ?? "none";
    this.#badge.dataset.state = state === "running" ? "live" : state === "completed" || state === "failed" ? state : "ended";
    setText(this.#badge, t(`recordingState.${state}`));
    const hasFigures = recording !== null && recording.bytes > 0 && state !== "cancelled";
    setText(this.#figures, hasFigures ? `${format.duration(recording.seconds)} · ${format.size(recording.bytes)}` : "");
    if (performance.now() - this.#answeredAt > ANSWER_MILLISECONDS) this.#answer = null;
    const reason = this.#answer ?? reasonOf(recording);
    this.#reason.hidden = reason === null;
    setText(this.#reason, reason ?? "");
    showGaps(this.#gaps, state === "cancelled" ? [] : recording?.gaps ?? []);

    const mayChange = hasToken() && this.#storage?.writable === true;
    const isThere = follows === "sources" ? isCaptured : isLive(stream);
    const mayStart = state !== "running" && state !== "idle";
    this.#order.hidden = !(mayChange && isThere && mayStart);
    this.#buttons.allow(!this.#order.hidden, mayChange && isActive(recording) && isThere);
  }
}

/** @param {import("../api/api.js").StreamRecording | null} recording @returns {string | null} */
function reasonOf(recording) {
  if (recording === null) return null;
  if (recording.state === "failed") return t("recording.interrupted", { reason: recording.reason ?? t("recording.unknownReason") });
  return recording.reason;
}
