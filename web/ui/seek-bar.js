/**
 * The seek bar of a live window or a recording: the position of the playhead, the buffered media, and the time of day of
 * each position.
 */

import { t } from "../strings/strings.js";
import { byId, setText } from "./dom.js";
import * as format from "./format.js";

/** A live window shorter than this many seconds has no seek bar. */
const SHORTEST_WINDOW = 4;
/** Minimum interval between seeks while the pointer drags. */
const DRAG_MILLISECONDS = 150;

/**
 * @typedef {object} Seekable What is played: a WatchSession or a recording.
 * @property {{range: Range | null, dateAt(time: number): number | null, seek(time: number): void}} engine
 * @property {boolean} atLiveEdge
 * @property {boolean} hasPlayed Whether anything has played that can be sought in.
 * @property {string} [phase] Phase of a WatchSession.
 */

/** @typedef {{start: number, end: number}} Range Seconds of media. */

/**
 * @typedef {object} Wording The text for a position.
 * @property {(time: number, range: Range) => string} brief
 * @property {(time: number, range: Range) => string} spoken
 */

/**
 * @typedef {object} Pictures What is seen at a place of the bar.
 * @property {(time: number) => void} show `time`: seconds from the start of the bar.
 * @property {() => void} hide
 */

/** @type {Wording} */
const BEHIND_LIVE = {
  brief: (time, range) => `−${format.duration(Math.max(0, range.end - time))}`,
  spoken: (time, range) => t("player.behind", { time: format.duration(Math.max(0, range.end - time)) }),
};

export class SeekBar {
  #video;
  #session;
  #wording;
  #shortest;
  #row;
  #input;
  #bubble;
  #position;
  /** @type {number | null} Position of a drag, in seconds of media. */
  #dragged = null;
  #asked = 0;
  #pictures;

  /**
   * @param {HTMLVideoElement} video
   * @param {Seekable} session
   * @param {{wording?: Wording, shortest?: number, pictures?: Pictures | null, root?: import("./dom.js").Root}} options
   *   `shortest`: minimum length in seconds for a bar.
   */
  constructor(video, session, { wording = BEHIND_LIVE, shortest = SHORTEST_WINDOW, pictures = null, root = document } = {}) {
    this.#pictures = pictures;
    this.#video = video;
    this.#session = session;
    this.#row = byId("seek-row", HTMLElement, root);
    this.#input = byId("seek", HTMLInputElement, root);
    this.#bubble = byId("seek-bubble", HTMLElement, root);
    this.#position = byId("position", HTMLTimeElement, root);
    this.#wording = wording;
    this.#shortest = shortest;
    this.#input.addEventListener("input", () => this.#drag(Number(this.#input.value)));
    this.#input.addEventListener("change", () => this.#drop());
    for (const event of ["pointermove", "pointerdown"]) {
      this.#row.addEventListener(event, (e) => this.#hover(/** @type {PointerEvent} */ (e)));
    }
    for (const event of ["pointerleave", "pointerup", "pointercancel"]) {
      this.#row.addEventListener(event, () => { if (this.#dragged === null) this.#hideBubble(); });
    }
    video.addEventListener("timeupdate", () => this.refresh());
  }

  /** Updates the bar. */
  refresh() {
    const { engine } = this.#session;
    const { range } = engine;
    const { currentTime } = this.#video;
    const date = engine.dateAt(currentTime);
    this.#position.hidden = date === null;
    if (date !== null) {
      this.#position.dateTime = new Date(date).toISOString();
      setText(this.#position, format.timeOfDay(date));
    }
    // Nothing is left to seek in after a stream was removed.
    const isGone = this.#session.phase === "notStarted";
    this.#row.hidden = isGone || range === null || range.end - range.start < this.#shortest || !this.#session.hasPlayed;
    if (range === null || this.#row.hidden) return;
    const input = this.#input;
    input.min = range.start.toFixed(2);
    input.max = range.end.toFixed(2);
    // At the edge, the mark stays at the end of the bar, although each part moves the end.
    const shown = this.#dragged ?? (this.#session.atLiveEdge ? range.end : currentTime);
    if (this.#dragged === null) input.value = shown.toFixed(2);
    this.#mark("--played", share(shown, range));
    this.#mark("--loaded", share(this.#loadedEnd(currentTime), range));
    const words = this.#session.atLiveEdge ? t("player.atEdge") : this.#wording.spoken(shown, range);
    const text = date === null ? words : `${format.timeOfDay(engine.dateAt(shown) ?? date)}, ${words}`;
    input.setAttribute("aria-valuetext", text);
  }

  /** @param {number} time */
  #drag(time) {
    this.#dragged = time;
    this.#showBubble(time);
    const now = performance.now();
    if (now - this.#asked < DRAG_MILLISECONDS) return;
    this.#asked = now;
    this.#session.engine.seek(time);
  }

  #drop() {
    if (this.#dragged !== null) this.#session.engine.seek(this.#dragged);
    this.#dragged = null;
    this.#hideBubble();
    this.refresh();
  }

  /** @param {PointerEvent} event */
  #hover(event) {
    const { range } = this.#session.engine;
    if (range === null || this.#dragged !== null) return;
    const box = this.#input.getBoundingClientRect();
    const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    this.#showBubble(range.start + part * (range.end - range.start));
  }

  /** @param {number} time */
  #showBubble(time) {
    const { engine } = this.#session;
    const { range } = engine;
    if (range === null) return;
    const date = engine.dateAt(time);
    const words = this.#wording.brief(time, range);
    setText(this.#bubble, date === null ? words : `${format.timeOfDay(date)}  ${words}`);
    this.#bubble.dataset.date = date === null ? "" : new Date(date).toISOString();
    this.#bubble.hidden = false;
    this.#mark("--hovered", share(time, range));
    this.#pictures?.show(time - range.start);
  }

  #hideBubble() {
    this.#bubble.hidden = true;
    this.#pictures?.hide();
  }

  /** @param {number} time @returns {number} End in seconds of the buffered range that contains a time. */
  #loadedEnd(time) {
    const { buffered } = this.#video;
    for (let n = 0; n < buffered.length; n += 1) {
      if (buffered.start(n) <= time + 0.1 && time <= buffered.end(n)) return buffered.end(n);
    }
    return time;
  }

  /** @param {string} name @param {number} value 0 to 1. */
  #mark(name, value) {
    this.#row.style.setProperty(name, value.toFixed(4));
  }
}

/** @param {number} time @param {Range} range */
const share = (time, { start, end }) => Math.min(1, Math.max(0, (time - start) / (end - start)));
