/** The note on a recording, and for operators the form that changes its title and its note. */

import { change, hasToken } from "../api/admin.js";
import { addressOf } from "../api/api.js";
import { t } from "../strings/strings.js";
import { announce, make, setText } from "../ui/dom.js";

/** Limits of the server, in bytes of UTF-8. */
const TITLE_LENGTH = 100;
const NOTE_LENGTH = 2000;

/** Sent to the document when the title or the note of a recording was changed. */
export const ANNOTATED = "recording-annotated";

export class AnnotationEditor {
  element;
  #note = make("p", "recording-note");
  #fold = /** @type {HTMLDetailsElement} */ (make("details"));
  #title = /** @type {HTMLInputElement} */ (make("input"));
  #text = /** @type {HTMLTextAreaElement} */ (make("textarea"));
  #problem = make("p", "warning");
  #changed;
  /** @type {import("../api/api.js").Recording | null} */
  #recording = null;

  /** @param {(recording: import("../api/api.js").Recording) => void} changed */
  constructor(changed) {
    this.#changed = changed;
    this.#note.dir = this.#title.dir = this.#text.dir = "auto";
    this.#title.id = "annotation-title";
    this.#title.maxLength = TITLE_LENGTH;
    this.#title.autocomplete = "off";
    this.#text.id = "annotation-note";
    this.#text.maxLength = NOTE_LENGTH;
    this.#text.rows = 3;
    this.#problem.setAttribute("role", "alert");
    this.#problem.toggleAttribute("hidden", true);
    const save = /** @type {HTMLButtonElement} */ (make("button", "button", t("annotation.save")));
    save.type = "submit";
    const form = make("form", "annotation-form", make("label", "", t("annotation.name"), this.#title),
      make("label", "", t("annotation.note"), this.#text), this.#problem, save);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    this.#fold.id = "annotation";
    this.#fold.append(make("summary", "", t("annotation.edit")), form);
    this.element = make("section", "annotation", this.#note, this.#fold);
    this.element.setAttribute("aria-label", t("annotation.heading"));
  }

  /** @param {import("../api/api.js").Recording} recording */
  open(recording) {
    this.#recording = recording;
    this.#fold.open = false;
    this.#fold.hidden = !hasToken();
    this.#title.value = recording.name ?? "";
    this.#text.value = recording.note ?? "";
    this.#problem.toggleAttribute("hidden", true);
    this.#show();
  }

  #show() {
    const note = this.#recording?.note ?? "";
    this.#note.toggleAttribute("hidden", note === "");
    setText(this.#note, note);
    this.element.hidden = note === "" && this.#fold.hidden;
  }

  async #save() {
    const recording = this.#recording;
    if (recording === null) return;
    try {
      const body = JSON.stringify({ name: this.#title.value.trim(), note: this.#text.value.trim() });
      const answer = await change("PUT", addressOf(recording), body);
      Object.assign(recording, { name: answer.name ?? null, note: answer.note ?? null });
      this.#problem.toggleAttribute("hidden", true);
      this.#fold.open = false;
      this.#show();
      this.#changed(recording);
      document.dispatchEvent(new Event(ANNOTATED));
      announce(t("annotation.saved"));
    } catch (error) {
      setText(this.#problem, error instanceof Error ? error.message : t("page.failed"));
      this.#problem.toggleAttribute("hidden", false);
    }
  }
}
