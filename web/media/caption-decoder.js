/** A decoder of CEA-608 (CTA-608): the captions of one channel of a field, as they stand on the screen. */

import { CaptionChanges } from "./caption-changes.js";

/** @typedef {import("./caption-changes.js").Line} Line */

const COLUMNS = 32, ROWS = 15;

const SPECIAL = "®°½¿™¢£♪à\u00a0èâêîôû";
const EXTENDED = [
  "ÁÉÓÚÜü‘¡*'—©℠•“”ÀÂÇÈÊËëÎÏïÔÙùÛ«»",
  "ÃãÍÌìÒòÕõ{}\\^_¦~ÄäÖöß¥¤│ÅåØø┌┐└┘",
];
/** What differs from ASCII. */
const BASIC = new Map(Object.entries({
  "*": "á", "\\": "é", "^": "í", "_": "ó", "`": "ú", "{": "ç", "|": "÷", "}": "Ñ", "~": "ñ", "\x7f": "█",
}));
/** The first of two rows that a preamble address code names, by its first byte. */
const ROW = [11, 1, 3, 12, 14, 5, 7, 9];

/** The letters on the screen, or those that wait. */
class Memory {
  /** @type {string[][]} */
  rows = Array.from({ length: ROWS + 1 }, () => []);

  /** @returns {Line[]} Rows with letters. */
  get lines() {
    return this.rows.flatMap((row, n) => {
      const text = Array.from(row, (letter) => letter ?? " ").join("").trim();
      return text === "" ? [] : [{ row: n, text }];
    });
  }
}

export class CaptionDecoder {
  /** @type {"none" | "pop" | "roll" | "paint" | "text"} */
  #mode = "none";
  #shown = new Memory();
  #waiting = new Memory();
  #row = ROWS;
  #column = 0;
  #rolled = 2;
  #isOurs = false;
  /** @type {[number, number] | null} The last command: it is sent twice. */
  #last = null;
  #changes;
  /** The bit of commands that says the channel. */
  #channel;

  /**
   * @param {(time: number, lines: Line[]) => void} show Called when the captions on the screen change.
   * @param {1 | 2} channel Of its field.
   */
  constructor(show, channel = 1) {
    this.#changes = new CaptionChanges(show);
    this.#channel = channel === 1 ? 0 : 8;
  }

  /** @param {number} time Seconds. @param {number} first @param {number} second A pair, with parity. */
  take(time, first, second) {
    const [one, two] = [first & 0x7f, second & 0x7f];
    let isWhole = true;
    if (one >= 0x10 && one <= 0x1f) isWhole = this.#command(one, two);
    else {
      this.#last = null;
      // Data about the programme in the second field (XDS) ends with the next command.
      if (one > 0 && one < 0x10) this.#isOurs = false;
      if (one >= 0x20 && this.#isOurs) {
        this.#write(letter(one));
        if (two >= 0x20) this.#write(letter(two));
        isWhole = false;
      }
    }
    if (isWhole) this.#tell(time);
    else this.tick(time);
  }

  /** @param {number} time Seconds: of a frame without a pair. */
  tick(time) { if (this.#changes.isDue(time)) this.#tell(time); }

  /** @param {number} time */
  #tell(time) { this.#changes.tell(time, this.#shown.lines); }

  get #memory() { return this.#mode === "pop" ? this.#waiting : this.#shown; }

  /** @param {string} text */
  #write(text) {
    if (this.#mode === "none" || this.#mode === "text") return;
    this.#memory.rows[this.#row][this.#column] = text;
    this.#column = Math.min(this.#column + 1, COLUMNS - 1);
  }

  /** @param {number} one @param {number} two @returns {boolean} Whether what is shown may have changed as a whole. */
  #command(one, two) {
    const isRepeated = this.#last?.[0] === one && this.#last[1] === two;
    this.#last = isRepeated ? null : [one, two];
    if (isRepeated) return false;
    this.#isOurs = (one & 8) === this.#channel;
    if (!this.#isOurs) return false;
    return this.#ownCommand(one & 0x17, two);
  }

  /** @param {number} one As in the first channel. @param {number} two */
  #ownCommand(one, two) {
    if (two >= 0x40) this.#address(one & 7, two);
    // 0x15 in the second field.
    else if (one === 0x14 || one === 0x15) return this.#control(two);
    else if (one === 0x11 && two >= 0x30) this.#write(SPECIAL[two - 0x30]);
    // A change of style takes a column.
    else if (one === 0x11 && two >= 0x20) this.#write(" ");
    else if ((one === 0x12 || one === 0x13) && two >= 0x20) this.#replace(EXTENDED[one - 0x12][two - 0x20]);
    else if (one === 0x17 && two >= 0x21 && two <= 0x23) this.#column = Math.min(this.#column + two - 0x20, COLUMNS - 1);
    return false;
  }

  /** @param {string} text Letters beyond the basic ones follow a letter for decoders that do not have them. */
  #replace(text) {
    this.#column = Math.max(0, this.#column - 1);
    this.#write(text);
  }

  /** @param {number} group @param {number} two A preamble address code. */
  #address(group, two) {
    const row = ROW[group] + (group !== 0 && two & 0x20 ? 1 : 0);
    if (this.#mode === "roll" && row !== this.#row) this.#moveTo(row);
    this.#row = row;
    this.#column = two & 0x10 ? (two & 0x0e) * 2 : 0;
  }

  /** @param {number} row The new lowest row of rolling captions. */
  #moveTo(row) {
    const rows = this.#shown.rows;
    const kept = rows.slice(Math.max(1, this.#row - this.#rolled + 1), this.#row + 1);
    this.#shown = new Memory();
    kept.reverse().forEach((letters, n) => { if (row - n >= 1) this.#shown.rows[row - n] = letters; });
  }

  /** @param {number} two @returns {boolean} */
  #control(two) {
    switch (two) {
      case 0x20: this.#mode = "pop"; return false;
      case 0x21:
        this.#column = Math.max(0, this.#column - 1);
        delete this.#memory.rows[this.#row][this.#column];
        return false;
      case 0x24: this.#memory.rows[this.#row].length = Math.min(this.#column, this.#memory.rows[this.#row].length); return false;
      case 0x25: case 0x26: case 0x27:
        if (this.#mode !== "roll") {
          this.#shown = new Memory();
          this.#waiting = new Memory();
          this.#row = ROWS;
          this.#column = 0;
        }
        this.#mode = "roll";
        this.#rolled = two - 0x23;
        return true;
      case 0x29: this.#mode = "paint"; return false;
      case 0x2a: case 0x2b: this.#mode = "text"; return false;
      case 0x2c: this.#shown = new Memory(); return true;
      case 0x2d: if (this.#mode === "roll") this.#roll(); return true;
      case 0x2e: this.#waiting = new Memory(); return false;
      case 0x2f:
        [this.#shown, this.#waiting] = [this.#waiting, this.#shown];
        this.#mode = "pop";
        return true;
    }
    return false;
  }

  /** A new row begins: the rows above it go up, and the highest one goes. */
  #roll() {
    const rows = this.#shown.rows, top = Math.max(1, this.#row - this.#rolled + 1);
    for (let row = 1; row < top; row += 1) rows[row] = [];
    for (let row = top; row < this.#row; row += 1) rows[row] = rows[row + 1];
    rows[this.#row] = [];
    this.#column = 0;
  }
}

/** @param {number} code @returns {string} */
function letter(code) {
  const ascii = String.fromCharCode(code);
  return BASIC.get(ascii) ?? ascii;
}
