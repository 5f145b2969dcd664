/** A decoder of CEA-708 (CTA-708): the captions of service 1, as they stand on the screen. Styles, colours and the places of
 * columns are left out. */

import { CaptionChanges } from "./caption-changes.js";

/** @typedef {import("./caption-changes.js").Line} Line */
/** @typedef {import("./caption-data.js").PacketPair} PacketPair */

const SERVICE = 1;
const WINDOWS = 8, ROWS = 15, COLUMNS = 42;
/** Bytes of a service that wait while captions are delayed (§9.1.4.3). */
const WAITING = 128;

/** Letters of the group G2 (§7.1.5). */
const G2 = new Map(Object.entries({
  0x20: " ", 0x21: "\u00a0", 0x25: "…", 0x2a: "Š", 0x2c: "Œ", 0x30: "█", 0x31: "‘", 0x32: "’", 0x33: "“", 0x34: "”",
  0x35: "•", 0x39: "™", 0x3a: "š", 0x3c: "œ", 0x3d: "℠", 0x3f: "Ÿ", 0x76: "⅛", 0x77: "⅜", 0x78: "⅝", 0x79: "⅞", 0x7a: "│",
  0x7b: "┐", 0x7c: "└", 0x7d: "─", 0x7e: "┘", 0x7f: "┌",
}));

/** A window: a rectangle of letters that is shown or hidden as a whole (§8.4). */
class Window {
  /** @type {string[][]} */
  rows = [[]];
  isVisible = false;
  row = 0;
  column = 0;
  /** @type {number} Of rows and columns. */
  height = 1;
  width = 1;
  /** In percent of the height, and which of its points stands there: upper, middle or lower. */
  anchor = 0;
  point = 0;

  /** @param {number[]} six The parameters of DefineWindow (§8.10.5.2). */
  define(six) {
    this.isVisible = (six[0] & 0x20) !== 0;
    this.anchor = (six[1] & 0x7f) / (six[1] & 0x80 ? 1 : 0.75);
    this.point = Math.min(Math.floor((six[3] >> 4) / 3), 2);
    this.height = Math.min((six[3] & 15) + 1, ROWS);
    this.width = Math.min((six[4] & 63) + 1, COLUMNS);
    this.rows.length = Math.min(this.rows.length, this.height);
    this.moveTo(this.row, this.column);
  }

  clear() {
    this.rows = [[]];
    this.row = this.column = 0;
  }

  /** @param {number} row @param {number} column */
  moveTo(row, column) {
    this.row = Math.min(row, this.height - 1);
    this.column = Math.min(column, this.width - 1);
  }

  /** @param {string} letter */
  write(letter) {
    while (this.rows.length <= this.row) this.rows.push([]);
    this.rows[this.row][this.column] = letter;
    this.column = Math.min(this.column + 1, this.width - 1);
  }

  back() {
    this.column = Math.max(0, this.column - 1);
    if (this.rows[this.row] !== undefined) delete this.rows[this.row][this.column];
  }

  /** A new row begins. In the lowest one the others go up, and the highest one goes. */
  newRow() {
    this.column = 0;
    if (this.row < this.height - 1) this.row += 1;
    else {
      while (this.rows.length < this.height) this.rows.push([]);
      this.rows = [...this.rows.slice(1), []];
    }
  }

  /** @returns {Line[]} Rows with letters. */
  get lines() {
    const rows = this.anchor / 100 * ROWS - this.height * this.point / 2;
    const top = Math.max(1, Math.min(Math.round(rows) + 1, ROWS - this.height + 1));
    return this.rows.flatMap((row, n) => {
      const text = Array.from(row, (letter) => letter ?? " ").join("").trim();
      return text === "" ? [] : [{ row: top + n, text }];
    });
  }
}

export class DigitalCaptionDecoder {
  /** @type {number[]} */
  #packet = [];
  /** @type {number | null} */
  #sequence = null;
  /** @type {number[]} Bytes of the service that are not read yet. */
  #waiting = [];
  #delayedUntil = -Infinity;
  /** @type {(Window | undefined)[]} */
  #windows = [];
  #current = 0;
  /** Whether captions have changed as a whole, and not by letters alone. */
  #isWhole = false;
  #changes;

  /** @param {(time: number, lines: Line[]) => void} show Called when the captions on the screen change. */
  constructor(show) { this.#changes = new CaptionChanges(show); }

  /** @param {number} time Seconds. @param {PacketPair[]} pairs Those of a frame. */
  take(time, pairs) {
    for (const [begins, first, second] of pairs) {
      if (begins) this.#packet = [first, second];
      else if (this.#packet.length > 0) this.#packet.push(first, second);
      const size = (this.#packet[0] & 63) * 2 || 128;
      if (this.#packet.length >= size) {
        this.#readPacket(this.#packet.slice(0, size));
        this.#packet = [];
      }
    }
    this.#read(time);
    if (this.#isWhole || this.#changes.isDue(time)) this.#changes.tell(time, this.#lines);
    this.#isWhole = false;
  }

  /** @returns {Line[]} */
  get #lines() {
    return this.#windows.flatMap((window) => (window?.isVisible ? window.lines : [])).sort((a, b) => a.row - b.row);
  }

  /** @param {number[]} packet A caption channel packet: its header, then blocks of services (§5, §6.2). */
  #readPacket(packet) {
    const sequence = packet[0] >> 6;
    // Something is missing: a command may be cut off.
    if (this.#sequence !== null && (this.#sequence + 1 & 3) !== sequence) this.#waiting = [];
    this.#sequence = sequence;
    for (let at = 1; at < packet.length;) {
      let number = packet[at] >> 5;
      const size = packet[at] & 31;
      at += 1;
      if (number === 7 && size > 0) { number = packet[at] & 63; at += 1; }
      if (number === 0) return;
      if (number === SERVICE) this.#waiting.push(...packet.slice(at, at + size));
      at += size;
    }
  }

  /** @param {number} time */
  #read(time) {
    while (this.#waiting.length > 0) {
      if (time < this.#delayedUntil && this.#waiting.length <= WAITING && !this.#endsDelay()) return;
      const size = this.#commandSize();
      if (this.#waiting.length < size) return;
      this.#command(this.#waiting.splice(0, size), time);
    }
  }

  /** A delay is ended by a command behind it (§8.10.5.7). */
  #endsDelay() {
    const found = this.#waiting.some((byte) => byte === 0x8e || byte === 0x8f);
    if (found) this.#delayedUntil = -Infinity;
    return found;
  }

  /** @returns {number} Bytes of the next command or letter, with its code (§7.1). */
  #commandSize() {
    const [code, next] = this.#waiting;
    if (code === 0x10) {
      if (next === undefined) return 2;
      if (next < 0x20) return 2 + (next >> 3);
      if (next < 0x80 || next >= 0xa0) return 2;
      return next < 0x88 ? 6 : next < 0x90 ? 7 : 3 + ((this.#waiting[2] ?? 0) & 31);
    }
    if (code < 0x20) return 1 + (code < 0x10 ? 0 : code < 0x18 ? 1 : 2);
    if (code >= 0x98 && code < 0xa0) return 7;
    if (code >= 0x88 && code <= 0x8d) return 2;
    return 1 + ([0x90, 0x92].includes(code) ? 2 : code === 0x91 ? 3 : code === 0x97 ? 4 : 0);
  }

  /** @param {number[]} bytes @param {number} time */
  #command(bytes, time) {
    const [code, next] = bytes;
    if (code >= 0x80 && code < 0xa0) this.#control(code, bytes.slice(1), time);
    else if (code === 0x10) {
      if (next >= 0x20 && next < 0x80) this.#write(G2.get(String(next)) ?? "_");
      else if (next >= 0xa0) this.#write("_");
    } else if (code >= 0x20) this.#write(code === 0x7f ? "♪" : String.fromCharCode(code));
    else this.#format(code);
  }

  /** @param {string} letter */
  #write(letter) { this.#windows[this.#current]?.write(letter); }

  /** @param {number} code Of the group C0 (§7.1.4). */
  #format(code) {
    const window = this.#windows[this.#current];
    if (window === undefined) return;
    switch (code) {
      case 0x08: window.back(); break;
      case 0x0c: window.clear(); this.#isWhole = true; break;
      case 0x0d: window.newRow(); this.#isWhole = true; break;
      case 0x0e: window.rows[window.row] = []; window.column = 0; break;
    }
  }

  /** @param {number} code Of the group C1 (§8.10.5). @param {number[]} parameters @param {number} time */
  #control(code, parameters, time) {
    if (code < 0x88) { if (this.#windows[code - 0x80] !== undefined) this.#current = code - 0x80; return; }
    if (code >= 0x98) { this.#define(code - 0x98, parameters); return; }
    if (code <= 0x8c) { this.#change(code, parameters[0]); return; }
    switch (code) {
      case 0x8d: this.#delayedUntil = time + parameters[0] / 10; break;
      case 0x8e: this.#delayedUntil = -Infinity; break;
      case 0x8f:
        this.#windows = [];
        this.#delayedUntil = -Infinity;
        this.#isWhole = true;
        break;
      case 0x92: this.#windows[this.#current]?.moveTo(parameters[0] & 15, parameters[1] & 63); break;
    }
  }

  /** @param {number} number @param {number[]} six */
  #define(number, six) {
    this.#windows[number] ??= new Window();
    this.#windows[number]?.define(six);
    this.#current = number;
    this.#isWhole = true;
  }

  /** @param {number} code Clear, display, hide, toggle or delete. @param {number} map The windows that it is for. */
  #change(code, map) {
    this.#isWhole = true;
    for (let number = 0; number < WINDOWS; number += 1) {
      const window = this.#windows[number];
      if (window === undefined || !(map >> number & 1)) continue;
      switch (code) {
        case 0x88: window.clear(); break;
        case 0x89: window.isVisible = true; break;
        case 0x8a: window.isVisible = false; break;
        case 0x8b: window.isVisible = !window.isVisible; break;
        case 0x8c: this.#windows[number] = undefined; break;
      }
    }
  }
}
