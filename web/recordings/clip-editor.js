/** Cuts a clip out of a recording: two handles on the seek bar, their times, and a download link for the clip. */

import { addressOf } from "../api/api.js";
import { t } from "../strings/strings.js";
import { make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";

/** Length of a new clip in seconds. It begins at the playhead. */
const USUAL_LENGTH = 30;
const SHORTEST = 0.1;
/** Longest clip that the server makes, in seconds. */
const LONGEST = 4 * 3600;
/** Seconds by which keys move a handle. */
const STEPS = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10, PageUp: 10 });
/** Seconds by which arrow keys with Shift move a handle. */
const FINE = 0.1;
/** Minimum interval between seeks while a handle is dragged. */
const DRAG_MILLISECONDS = 150;

/** @typedef {"start" | "end"} Edge */

export class ClipEditor {
  /** Elements to put into the row of the seek bar. */
  marks;
  /** The panel below the player. */
  element;
  #playback;
  #video;
  #opener;
  /** @type {import("../api/api.js").Recording | null} */
  #recording = null;
  /** Seconds of the recording. */
  #start = 0;
  #end = 0;
  #isPreviewing = false;
  #shownAt = 0;
  #handles = { start: handle("start", t("clip.start")), end: handle("end", t("clip.end")) };
  #span = make("span", "clip-span");
  #times = make("p", "clip-times");
  #download = /** @type {HTMLAnchorElement} */ (make("a", "button", t("clip.download")));
  #problem = make("p", "warning");

  /**
   * @param {import("../engine/recording-playback.js").RecordingPlayback} playback
   * @param {HTMLVideoElement} video
   * @param {HTMLButtonElement} opener
   */
  constructor(playback, video, opener) {
    this.#playback = playback;
    this.#video = video;
    this.#opener = opener;
    this.#span.setAttribute("aria-hidden", "true");
    this.marks = [this.#span, this.#handles.start, this.#handles.end];
    this.element = this.#build();
    opener.id = "clip-open";
    opener.setAttribute("aria-expanded", "false");
    opener.setAttribute("aria-controls", "clip");
    opener.addEventListener("click", () => this.#toggle());
    video.addEventListener("timeupdate", () => this.#endPreview());
    for (const edge of /** @type {Edge[]} */ (["start", "end"])) this.#listen(edge);
    this.#show(false);
  }

  #build() {
    const here = (/** @type {Edge} */ edge, /** @type {string} */ word) =>
      press(word, () => this.#move(edge, this.#video.currentTime));
    this.#download.id = "clip-download";
    this.#times.setAttribute("role", "status");
    const element = make("section", "clip", make("h3", "", t("clip.title")), this.#times,
      make("div", "clip-actions", here("start", t("clip.startHere")), here("end", t("clip.endHere")),
        press(t("clip.play"), () => this.#preview()), this.#download),
      make("p", "hint", t("clip.hint")),
      this.#problem);
    element.id = "clip";
    element.setAttribute("aria-label", t("clip.title"));
    return element;
  }

  get isOpen() { return !this.element.hasAttribute("hidden"); }

  /**
   * Must be called when a recording is opened.
   * @param {import("../api/api.js").Recording} recording
   */
  open(recording) {
    this.#recording = recording;
    this.#show(false);
  }

  close() {
    this.#recording = null;
    this.#show(false);
  }

  #toggle() {
    if (this.isOpen) return this.#show(false);
    const { range } = this.#playback;
    if (range === null) return;
    this.#end = Math.min(this.#video.currentTime + USUAL_LENGTH, range.end);
    this.#start = Math.max(range.start, Math.min(this.#video.currentTime, this.#end - USUAL_LENGTH));
    this.#show(true);
    this.refresh();
    this.#handles.start.focus();
  }

  /** @param {boolean} visible */
  #show(visible) {
    this.#isPreviewing = false;
    for (const part of [this.element, ...this.marks]) part.toggleAttribute("hidden", !visible);
    this.#opener.setAttribute("aria-expanded", String(visible));
  }

  /** Updates the editor. */
  refresh() {
    const { range } = this.#playback;
    if (!this.isOpen || range === null || this.#recording === null) return;
    const share = (/** @type {number} */ time) => String((time - range.start) / (range.end - range.start));
    const length = this.#end - this.#start;
    for (const edge of /** @type {Edge[]} */ (["start", "end"])) {
      const time = this.#time(edge);
      const [least, most] = this.#limits(edge, range);
      const element = this.#handles[edge];
      element.style.setProperty("--at", share(time));
      for (const [name, value] of [["min", least], ["max", most], ["now", time]]) {
        element.setAttribute(`aria-value${name}`, Number(value).toFixed(1));
      }
      element.setAttribute("aria-valuetext", format.exact(time));
    }
    this.#span.style.setProperty("--from", share(this.#start));
    this.#span.style.setProperty("--to", share(this.#end));
    setText(this.#times, t("clip.times", {
      from: format.exact(this.#start), to: format.exact(this.#end), length: format.seconds(length) }));
    const isTooLong = length > LONGEST;
    this.#problem.toggleAttribute("hidden", !isTooLong);
    setText(this.#problem, isTooLong ? t("clip.tooLong", { hours: LONGEST / 3600 }) : "");
    if (isTooLong) this.#download.removeAttribute("href");
    else this.#download.href = `${addressOf(this.#recording)}/clip?from=${this.#start.toFixed(3)}&to=${this.#end.toFixed(3)}`;
  }

  /** @param {Edge} edge */
  #time(edge) {
    return edge === "start" ? this.#start : this.#end;
  }

  /** @param {Edge} edge @param {{start: number, end: number}} range @returns {[number, number]} */
  #limits(edge, range) {
    return edge === "start" ? [range.start, this.#end - SHORTEST] : [this.#start + SHORTEST, range.end];
  }

  /** @param {Edge} edge @param {number} time Seconds of the recording. */
  #move(edge, time) {
    const { range } = this.#playback;
    if (range === null) return;
    const [least, most] = this.#limits(edge, range);
    const placed = Math.max(least, Math.min(time, most));
    if (edge === "start") this.#start = placed;
    else this.#end = placed;
    this.refresh();
  }

  /** @param {Edge} edge */
  #listen(edge) {
    const element = this.#handles[edge];
    element.addEventListener("keydown", (event) => {
      const { range } = this.#playback;
      if (range === null || event.altKey || event.ctrlKey || event.metaKey) return;
      const step = STEPS[event.key];
      if (step !== undefined) this.#move(edge, this.#time(edge) + (event.shiftKey ? Math.sign(step) * FINE : step));
      else if (event.key === "Home" || event.key === "End") this.#move(edge, this.#limits(edge, range)[event.key === "Home" ? 0 : 1]);
      else return;
      event.preventDefault();
      this.#look(edge);
    });
    element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      element.setPointerCapture(event.pointerId);
      element.focus();
      event.preventDefault();
    });
    element.addEventListener("pointermove", (event) => {
      if (!element.hasPointerCapture(event.pointerId)) return;
      const { range } = this.#playback;
      const box = element.parentElement?.getBoundingClientRect();
      if (range === null || !box) return;
      this.#move(edge, range.start + ((event.clientX - box.left) / box.width) * (range.end - range.start));
      if (performance.now() - this.#shownAt > DRAG_MILLISECONDS) this.#look(edge);
    });
    element.addEventListener("pointerup", () => this.#look(edge));
  }

  /**
   * Shows the frame at a handle.
   * @param {Edge} edge
   */
  #look(edge) {
    this.#isPreviewing = false;
    this.#shownAt = performance.now();
    this.#video.pause();
    this.#playback.seek(this.#time(edge));
  }

  #preview() {
    this.#playback.seek(this.#start);
    this.#isPreviewing = true;
    this.#video.play().catch(() => {});
  }

  #endPreview() {
    if (!this.#isPreviewing || this.#video.currentTime < this.#end) return;
    this.#isPreviewing = false;
    this.#video.pause();
  }
}

/** @param {Edge} edge @param {string} label */
function handle(edge, label) {
  const element = make("div", "clip-handle");
  element.id = `clip-${edge}`;
  element.dataset.edge = edge;
  element.tabIndex = 0;
  element.setAttribute("role", "slider");
  element.setAttribute("aria-orientation", "horizontal");
  element.setAttribute("aria-label", label);
  return element;
}

/** @param {string} word @param {() => void} act */
function press(word, act) {
  const button = /** @type {HTMLButtonElement} */ (make("button", "button quiet", word));
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}
