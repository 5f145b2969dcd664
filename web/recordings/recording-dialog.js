/** The dialog that plays a recording, lists its gaps, and cuts clips. */

import { byId, icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { t } from "../strings/strings.js";
import { showGaps } from "./gaps.js";
import { recordingLink } from "./recording-link.js";
import { RecordingPlayer } from "./recording-player.js";
import { AnnotationEditor } from "./annotation-editor.js";
import { ShareRecording } from "./share-recording.js";

/** @type {RecordingDialog | null} Made when the first recording is played. */
let dialog = null;

/** @param {import("../api/api.js").Recording} recording @param {number} at Seconds at which it begins to play. */
export function openRecording(recording, at) {
  dialog ??= new RecordingDialog(byId("recording-dialog", HTMLDialogElement));
  dialog.open(recording, at);
}

/** Whether this is the page of recordings, where each recording has an address. */
const isGallery = () => /\/recordings\/?$/.test(location.pathname);

class RecordingDialog {
  #dialog;
  #player;
  #title = make("h2");
  #error = make("p", "warning");
  #reason = make("p", "warning");
  #gaps = make("ul", "gaps");
  #share;
  #annotation = new AnnotationEditor((recording) => this.#entitle(recording));
  /** The page's own address is asked for and not back yet. */
  #isReturning = false;
  /** @type {(() => void) | null} What sets the address of the recording that was opened meanwhile. */
  #whenBack = null;

  /** @param {HTMLDialogElement} dialog */
  constructor(dialog) {
    this.#dialog = dialog;
    const close = /** @type {HTMLButtonElement} */ (make("button", "round", icon("close")));
    close.id = "recording-dialog-close";
    close.type = "button";
    close.setAttribute("aria-label", t("page.close"));
    close.addEventListener("click", () => dialog.close());
    this.#title.id = "recording-dialog-title";
    this.#title.dir = "auto";
    this.#error.id = "recording-dialog-error";
    this.#error.setAttribute("role", "alert");
    setText(this.#error, t("recording.unplayable"));
    dialog.append(make("div", "dialog-head", this.#title, close));
    this.#player = new RecordingPlayer(dialog);
    this.#share = new ShareRecording(this.#player.video);
    dialog.append(this.#error, this.#reason, this.#gaps, this.#annotation.element, this.#share.element);
    this.#player.video.addEventListener("error", () => {
      this.#error.toggleAttribute("hidden", this.#player.video.error === null || !dialog.open);
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    // The event may arrive when the next recording is already open.
    dialog.addEventListener("close", () => { if (!dialog.open) this.#closed(); });
    addEventListener("popstate", () => {
      if (this.#isReturning) {
        this.#isReturning = false;
        this.#whenBack?.();
        this.#whenBack = null;
      } else if (dialog.open && !history.state?.recording) dialog.close();
    });
    // Back from another page nothing is on its way.
    addEventListener("pageshow", () => { this.#isReturning = false; });
    dialog.addEventListener("keydown", (event) => this.#player.key(event));
  }

  #closed() {
    this.#player.unload();
    this.#whenBack = null;
    if (this.#isReturning) return;
    // The address of the page before it. It comes back a moment later.
    if (history.state?.recording) {
      this.#isReturning = true;
      history.back();
    } else if (isGallery() && new URLSearchParams(location.search).has("play")) history.replaceState(null, "", location.pathname);
  }

  /** @param {import("../api/api.js").Recording} recording */
  #entitle(recording) {
    setText(this.#title, `${recording.name ?? recording.stream}, ${format.moment(recording.startedAt)}`);
  }

  /**
   * Gives the page the recording's address.
   * @param {import("../api/api.js").Recording} recording
   */
  #address(recording) {
    const asked = new URLSearchParams(location.search);
    if (!isGallery() || (asked.get("play") === recording.file && asked.get("stream") === recording.stream)) return;
    const link = new URL(recordingLink(recording), location.href);
    // The address of another recording is replaced, so that one step back leads to the page.
    const place = /** @type {[{ recording: boolean }, string, string]} */ ([{ recording: true }, "", `${location.pathname}${link.search}`]);
    if (history.state?.recording) history.replaceState(...place);
    else history.pushState(...place);
  }

  /** @param {import("../api/api.js").Recording} recording @param {number} at Seconds at which it begins to play. */
  open(recording, at = 0) {
    this.#entitle(recording);
    this.#annotation.open(recording);
    if (this.#isReturning) this.#whenBack = () => this.#address(recording);
    else this.#address(recording);
    this.#error.toggleAttribute("hidden", true);
    const reason = endOf(recording);
    this.#reason.toggleAttribute("hidden", reason === "");
    setText(this.#reason, reason);
    showGaps(this.#gaps, recording.gaps ?? [], (time) => this.#player.seek(time));
    this.#dialog.showModal();
    this.#player.load(recording, at);
    this.#share.open(recording);
  }
}

/** @param {import("../api/api.js").Recording} recording @returns {string} Why it ended before its stream; else "". */
function endOf(recording) {
  if (recording.state === "failed") return `${t("recording.interrupted", { reason: recording.reason ?? t("recording.unknownReason") })}.`.replace(/\.\.$/, ".");
  return recording.salvaged ? t("recording.salvaged") : "";
}
