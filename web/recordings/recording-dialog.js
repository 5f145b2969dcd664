/** The dialog that plays a recording, lists its gaps, and cuts clips. */

import { byId, icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { showGaps } from "./gaps.js";
import { RecordingPlayer } from "./recording-player.js";

/** @type {RecordingDialog | null} Made when the first recording is played. */
let dialog = null;

/** @param {import("../api/api.js").Recording} recording */
export function openRecording(recording) {
  dialog ??= new RecordingDialog(byId("recording-dialog", HTMLDialogElement));
  dialog.open(recording);
}

class RecordingDialog {
  #dialog;
  #player;
  #title = make("h2");
  #error = make("p", "warning");
  #reason = make("p", "warning");
  #gaps = make("ul", "gaps");

  /** @param {HTMLDialogElement} dialog */
  constructor(dialog) {
    this.#dialog = dialog;
    const close = /** @type {HTMLButtonElement} */ (make("button", "round", icon("close")));
    close.id = "recording-dialog-close";
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => dialog.close());
    this.#title.id = "recording-dialog-title";
    this.#error.id = "recording-dialog-error";
    this.#error.setAttribute("role", "alert");
    setText(this.#error, "This browser cannot play this recording. Download it and play it with VLC or ffplay.");
    dialog.append(make("div", "dialog-head", this.#title, close));
    this.#player = new RecordingPlayer(dialog);
    dialog.append(this.#error, this.#reason, this.#gaps);
    this.#player.video.addEventListener("error", () => {
      this.#error.toggleAttribute("hidden", this.#player.video.error === null || !dialog.open);
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    // The event may arrive when the next recording is already open.
    dialog.addEventListener("close", () => { if (!dialog.open) this.#player.unload(); });
    dialog.addEventListener("keydown", (event) => this.#player.key(event));
  }

  /** @param {import("../api/api.js").Recording} recording */
  open(recording) {
    setText(this.#title, `${recording.stream}, ${format.moment(recording.startedAt)}`);
    this.#error.toggleAttribute("hidden", true);
    const reason = endOf(recording);
    this.#reason.toggleAttribute("hidden", reason === "");
    setText(this.#reason, reason);
    showGaps(this.#gaps, recording.gaps ?? [], (time) => this.#player.seek(time));
    this.#dialog.showModal();
    this.#player.load(recording);
  }
}

/** @param {import("../api/api.js").Recording} recording @returns {string} Why it ended before its stream; else "". */
function endOf(recording) {
  if (recording.state === "failed") return `Interrupted: ${recording.reason ?? "unknown reason"}.`.replace(/\.\.$/, ".");
  return recording.salvaged ? "The server was killed while it wrote this recording. The next start repaired the file." : "";
}
