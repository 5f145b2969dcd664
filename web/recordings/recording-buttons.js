/** The buttons that start, stop and discard the recording of a stream. */

import { t } from "../strings/strings.js";
import { confirmButton } from "../ui/confirm-button.js";
import { icon, make } from "../ui/dom.js";

/** @typedef {"start" | "stop" | "cancel"} RecordingAction */

/**
 * @param {string} name Name of the stream.
 * @param {(action: RecordingAction) => void} control
 */
export function recordingButtons(name, control) {
  const start = button("record", t("record.start"), t("record.startOf", { name }));
  const stop = button("stop", t("record.stop"), t("record.stopOf", { name }));
  const cancel = button("bin", t("record.discard"), t("record.discardOf", { name }));
  start.addEventListener("click", () => control("start"));
  stop.addEventListener("click", () => control("stop"));
  confirmButton(cancel, () => control("cancel"));
  return {
    element: make("div", "recording-buttons", start, stop, cancel),
    /** @param {boolean} canStart @param {boolean} canStop */
    allow(canStart, canStop) {
      start.hidden = !canStart;
      stop.hidden = cancel.hidden = !canStop;
    },
  };
}

/** @param {string} symbol @param {string} word @param {string} label */
function button(symbol, word, label) {
  const element = /** @type {HTMLButtonElement} */ (make("button", "button quiet", icon(symbol), make("span", "", word)));
  element.type = "button";
  element.setAttribute("aria-label", label);
  return element;
}
