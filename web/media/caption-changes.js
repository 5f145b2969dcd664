/** What stands on the screen, told when it changes. */

/** @typedef {{row: number, text: string}} Line Rows count from 1 to 15. */

/** Seconds between two changes of captions that are written letter by letter. */
const STEP = 0.2;

export class CaptionChanges {
  #told = "";
  #toldAt = -Infinity;
  #show;

  /** @param {(time: number, lines: Line[]) => void} show Called when the captions on the screen change. */
  constructor(show) { this.#show = show; }

  /** @param {number} time Seconds. @param {Line[]} lines On the screen, changed as a whole. */
  tell(time, lines) {
    const text = JSON.stringify(lines);
    if (text === this.#told || (lines.length === 0 && this.#told === "")) return;
    this.#told = text;
    this.#toldAt = time;
    this.#show(time, lines);
  }

  /** @param {number} time Seconds. @returns {boolean} Whether letters that have come since may be told. */
  isDue(time) { return time - this.#toldAt >= STEP; }
}
