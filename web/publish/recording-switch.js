/** The state of the stream's recording, and its start and stop: for those whose key, or admin token of this tab, may do that. */

import { hasToken } from "../api/admin.js";
import { ADMIN_TOKEN } from "../api/api.js";
import { timeout } from "../media/fetching.js";
import { base } from "../media/root.js";
import { recordingButtons } from "../recordings/recording-buttons.js";
import { t } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { serverProblem } from "./problems.js";

const TIMEOUT_MILLISECONDS = 15_000;

export class RecordingSwitch {
  #panel = byId("recording", HTMLElement);
  #badge = byId("recording-state", HTMLElement);
  #figures = byId("recording-figures", HTMLElement);
  #reason = byId("recording-reason", HTMLElement);
  #name;
  #key;
  #buttons;
  /** Nobody may change anything over HTTP, or this key may not. */
  #isReadOnly;

  /** @param {string} name @param {string} key The publish key. @param {import("../api/api.js").Overview} overview */
  constructor(name, key, overview) {
    this.#name = name;
    this.#key = key;
    this.#buttons = recordingButtons(name, (action) => this.#control(action));
    this.#isReadOnly = overview.writable !== true || this.#bearer === "";
    this.#reason.hidden = true;
    byId("recording-buttons", HTMLElement).replaceChildren(this.#buttons.element);
    this.#panel.hidden = overview.records === false;
    this.show(null);
  }

  get #bearer() { return hasToken() ? sessionStorage.getItem(ADMIN_TOKEN) ?? "" : this.#key; }

  /** @param {import("../api/api.js").Stream | null} stream */
  show(stream) {
    const recording = stream?.recording ?? null;
    const isRunning = recording?.state === "running" || recording?.state === "idle";
    this.#badge.dataset.state = recording?.state === "running" ? "live" : recording?.state === "failed" ? "failed" : "ended";
    setText(this.#badge, t(`recordingState.${recording?.state ?? "none"}`));
    setText(this.#figures, recording && isRunning ? `${format.duration(recording.seconds)} · ${format.size(recording.bytes)}` : "");
    const isLive = stream?.state === "live";
    this.#buttons.allow(isLive && !isRunning && !this.#isReadOnly, isLive && isRunning && !this.#isReadOnly);
  }

  /** @param {import("../recordings/recording-buttons.js").RecordingAction} action */
  async #control(action) {
    let problem = "";
    try {
      const response = await fetch(`${base}/api/v1/streams/${encodeURIComponent(this.#name)}/recording/${action}`, {
        method: "POST", cache: "no-store", headers: { Authorization: `Bearer ${this.#bearer}` }, signal: timeout(TIMEOUT_MILLISECONDS),
      });
      if (response.status === 401 || response.status === 403) {
        this.#isReadOnly = true;
        this.#buttons.allow(false, false);
        problem = t("publish.mayNotRecord");
      } else if (!response.ok) {
        problem = serverProblem(await response.json().catch(() => ({})), response.status);
      }
    } catch {
      problem = t("refusal.unreachable");
    }
    this.#reason.hidden = problem === "";
    setText(this.#reason, problem);
  }
}
