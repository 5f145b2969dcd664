/** The newest parts of a copy that is kept in memory: bounded in bytes and in time. Each part is a file of its own. */

/**
 * @template Content
 * @typedef {{startedAt: number, endedAt: number, bytes: number, content: Content[]}} CopyPart Times in milliseconds since 1970.
 */

/** A part of this share of all bytes is full: what goes for a new one is never much. */
const PART_SHARE = 1 / 8;

/** @template Content */
export class CopyParts {
  #bytes;
  #milliseconds;
  /** @type {CopyPart<Content>[]} Oldest first. */
  #parts = [];

  /** @param {number} bytes The most that is kept. Parts are to end where they are full. @param {number} milliseconds */
  constructor(bytes, milliseconds) {
    this.#bytes = bytes;
    this.#milliseconds = milliseconds;
  }

  /** @param {number} startedAt @returns {CopyPart<Content>} A new part, which grows by `add`. */
  begin(startedAt) {
    const part = { startedAt, endedAt: startedAt, bytes: 0, content: [] };
    this.#parts.push(part);
    return part;
  }

  /** @param {CopyPart<Content>} part @param {Content} content @param {number} bytes @param {number} now */
  add(part, content, bytes, now) {
    part.content.push(content);
    part.bytes += bytes;
    part.endedAt = now;
    const isTooMuch = () => this.bytes > this.#bytes || now - this.#parts[0].endedAt > this.#milliseconds;
    while (this.#parts.length > 1 && isTooMuch()) this.#parts.shift();
  }

  /** @param {CopyPart<Content>} part */
  isFull(part) { return part.bytes >= this.#bytes * PART_SHARE; }

  get bytes() { return this.#parts.reduce((sum, part) => sum + part.bytes, 0); }

  /** Those with content. */
  get parts() { return this.#parts.filter((part) => part.bytes > 0); }

  clear() { this.#parts = []; }
}
