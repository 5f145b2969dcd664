/** The running recordings, and the live streams that are not recorded, with their buttons. */

import { base } from "../media/root.js";
import { t } from "../strings/strings.js";
import { byId, icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { playRecording } from "./play-recording.js";
import { recordingButtons } from "./recording-buttons.js";

/** @type {Map<string, ReturnType<typeof row>>} */
const rows = new Map();

/**
 * @param {import("../api/api.js").Stream[]} streams
 * @param {import("../api/api.js").Recording[]} running
 * @param {boolean} mayChange
 * @param {(stream: string, action: import("./recording-buttons.js").RecordingAction) => void} control
 */
export function showNow(streams, running, mayChange, control) {
  const list = byId("now-list", HTMLElement);
  const recorded = new Map(running.map((recording) => [recording.stream, recording]));
  const states = new Map(streams.map((s) => [s.name, s.recording ?? null]));
  const idle = streams.filter((s) => s.state === "live" && s.protocol !== "test" && !recorded.has(s.name))
    .filter((s) => mayChange || s.recording?.state === "failed");
  const names = [...recorded.keys(), ...idle.map((s) => s.name)].sort();
  for (const [name, shown] of rows) {
    if (names.includes(name)) continue;
    shown.element.remove();
    rows.delete(name);
  }
  names.forEach((name, position) => {
    const shown = rows.get(name) ?? row(name, control);
    rows.set(name, shown);
    shown.update(recorded.get(name) ?? null, states.get(name) ?? null, mayChange);
    if (list.children[position] !== shown.element) list.insertBefore(shown.element, list.children[position] ?? null);
  });
  byId("now", HTMLElement).hidden = names.length === 0;
}

/** @param {string} name @param {(stream: string, action: import("./recording-buttons.js").RecordingAction) => void} control */
function row(name, control) {
  const link = /** @type {HTMLAnchorElement} */ (make("a", "", name));
  link.href = `${base}/watch/${encodeURIComponent(name)}`;
  const badge = make("span", "badge");
  const figures = make("span", "now-figures");
  const buttons = recordingButtons(name, (action) => control(name, action));
  const trouble = make("p", "now-problem");
  const play = /** @type {HTMLButtonElement} */ (make("button", "button quiet", icon("play"), make("span", "", t("recording.play"))));
  const element = make("li", "now-row", make("h3", "", link), badge, figures, play, buttons.element, trouble);
  /** @type {import("../api/api.js").Recording | null} */
  let shown = null;
  play.type = "button";
  play.setAttribute("aria-label", t("recording.playSoFar", { name }));
  play.addEventListener("click", () => { if (shown) playRecording(shown); });
  return {
    element,
    /**
     * @param {import("../api/api.js").Recording | null} recording
     * @param {import("../api/api.js").StreamRecording | null} state
     * @param {boolean} mayChange
     */
    update(recording, state, mayChange) {
      shown = recording;
      // Before the first segment is complete, the playlist is empty.
      play.hidden = recording === null || !(recording.seconds > 0);
      const isInterrupted = recording === null && state?.state === "failed";
      const done = recording?.finishing ?? null;
      const word = done !== null ? "state.finishing" : recording ? "state.recording" : isInterrupted ? "state.interrupted" : "state.notRecorded";
      setText(badge, t(word));
      badge.dataset.state = done !== null ? "completed" : recording ? "live" : isInterrupted ? "failed" : "ended";
      const reason = recording !== null || isInterrupted ? state?.reason ?? "" : "";
      trouble.hidden = reason === "";
      setText(trouble, reason);
      const parts = recording ? [format.duration(recording.seconds), format.size(recording.bytes)] : [];
      if (done !== null) parts.push(t("recording.done", { share: Math.floor(done * 100) }));
      setText(figures, parts.join(" · "));
      buttons.allow(recording === null && mayChange, recording !== null && done === null && mayChange);
    },
  };
}
