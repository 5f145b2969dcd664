/**
 * Parser of fragmented MP4 (ISO/IEC 14496-12), as far as a player needs it. It finds where one append ends and the next begins,
 * the codecs of an init segment, and the start time of a fragment.
 */

import { codecString } from "./codecs.js";

/** Largest accepted box. A larger size means that the bytes are not MP4 of a live stream. */
const MAXIMUM_BOX_BYTES = 64 * 1024 * 1024;

/**
 * @typedef {{kind: "init" | "media", bytes: Uint8Array}} Piece
 * Bytes of one append: ftyp + moov, or everything up to and including an mdat.
 */

/**
 * @typedef {object} InitTrack One track of an init segment.
 * @property {number} id
 * @property {"video" | "audio" | "other"} kind
 * @property {string} codec RFC 6381 string, for example avc1.4d401f
 * @property {number} timescale Ticks per second of the track's decode times.
 * @property {number} width Pixels; 0 for audio.
 * @property {number} height Pixels; 0 for audio.
 */

/** Cuts a byte stream into pieces, independent of the sizes of the received chunks. */
export class PieceSplitter {
  /** @type {Uint8Array} Bytes received and not yet returned; only the first #length count. */
  #held = new Uint8Array(256 * 1024);
  #length = 0;
  /** Offset in #held of the first box that has not been read. */
  #scanned = 0;
  #sawMoov = false;

  /**
   * @param {Uint8Array} chunk
   * @returns {Piece[]} The pieces that are now complete.
   */
  push(chunk) {
    this.#append(chunk);
    /** @type {Piece[]} */
    const pieces = [];
    for (;;) {
      const box = boxAt(this.#held, this.#scanned, this.#length);
      if (box === null) return pieces;
      if (box.size > MAXIMUM_BOX_BYTES || box.size < box.header) {
        throw new Error(`a box "${box.type}" of ${box.size} bytes: this is not a live MP4`);
      }
      if (this.#scanned + box.size > this.#length) return pieces;
      this.#scanned += box.size;
      if (box.type === "moov") {
        this.#sawMoov = true;
        pieces.push({ kind: "init", bytes: this.#take() });
      } else if (box.type === "mdat") {
        if (!this.#sawMoov) throw new Error("media before the init segment");
        pieces.push({ kind: "media", bytes: this.#take() });
      }
    }
  }

  /** @param {Uint8Array} chunk */
  #append(chunk) {
    const needed = this.#length + chunk.length;
    if (needed > this.#held.length) {
      const larger = new Uint8Array(Math.max(needed, this.#held.length * 2));
      larger.set(this.#held.subarray(0, this.#length));
      this.#held = larger;
    }
    this.#held.set(chunk, this.#length);
    this.#length = needed;
  }

  #take() {
    const piece = this.#held.slice(0, this.#scanned);
    this.#held.copyWithin(0, this.#scanned, this.#length);
    this.#length -= this.#scanned;
    this.#scanned = 0;
    return piece;
  }
}

/**
 * @param {Uint8Array} bytes
 * @returns {InitTrack[]} The tracks of an init segment (ftyp + moov), in file order.
 */
export function readInit(bytes) {
  /** @type {InitTrack[]} */
  const tracks = [];
  for (const trak of find(whole(bytes), "moov", "trak")) {
    const tkhd = first(trak, "tkhd");
    const mdhd = first(trak, "mdia", "mdhd");
    const hdlr = first(trak, "mdia", "hdlr");
    const stsd = first(trak, "mdia", "minf", "stbl", "stsd");
    if (!tkhd || !mdhd || !hdlr || !stsd) continue;
    const handler = hdlr.type(8);
    const entry = new Region(stsd.bytes, stsd.start + 8, stsd.end);
    const sample = children(entry)[0];
    if (!sample) continue;
    const isVideo = handler === "vide";
    const headerBytes = isVideo ? 78 : 28;
    const configuration = new Region(sample.bytes, Math.min(sample.start + headerBytes, sample.end), sample.end);
    tracks.push({
      id: tkhd.u32(tkhd.u8(0) === 1 ? 20 : 12),
      kind: isVideo ? "video" : handler === "soun" ? "audio" : "other",
      codec: codecString(sample.name, children(configuration)),
      timescale: mdhd.u32(mdhd.u8(0) === 1 ? 20 : 12) || 1,
      width: isVideo ? sample.u16(24) : 0,
      height: isVideo ? sample.u16(26) : 0,
    });
  }
  return tracks;
}

/**
 * @param {Uint8Array} bytes A media piece, or its beginning up to the mdat.
 * @param {InitTrack[]} tracks
 * @returns {number | null} Presentation time of the first video sample in seconds. Without video it is that of the track that
 *   begins first. It is the decode time (§8.8.12) plus the composition offset (§8.8.8). A segment begins with its video;
 *   audio may have an earlier time.
 */
export function startSeconds(bytes, tracks) {
  let earliest = null;
  const moof = first(whole(bytes), "moof");
  if (!moof) return null;
  for (const traf of find(moof, "traf")) {
    const tfhd = first(traf, "tfhd");
    const tfdt = first(traf, "tfdt");
    if (!tfhd || !tfdt) continue;
    const track = tracks.find((t) => t.id === tfhd.u32(4));
    if (!track) continue;
    const ticks = tfdt.u8(0) === 1 ? tfdt.u32(4) * 2 ** 32 + tfdt.u32(8) : tfdt.u32(4);
    const trun = first(traf, "trun");
    const seconds = (ticks + (trun ? firstOffset(trun) : 0)) / track.timescale;
    if (track.kind === "video") return seconds;
    if (earliest === null || seconds < earliest) earliest = seconds;
  }
  return earliest;
}

/** @param {Region} trun @returns {number} The first sample's composition offset in ticks. */
function firstOffset(trun) {
  const flags = trun.u32(0) % 2 ** 24;
  if (!(flags & 0x800)) return 0;
  const before = [0x1, 0x4, 0x100, 0x200, 0x400].filter((flag) => flags & flag).length;
  const offset = trun.u32(8 + 4 * before);
  return trun.u8(0) === 0 ? offset : offset | 0;
}

/** The payload of one box, or any range of bytes that contains boxes. Reads beyond the end return zero. */
export class Region {
  /**
   * @param {Uint8Array} bytes
   * @param {number} start
   * @param {number} end
   * @param {string} name The box's type.
   */
  constructor(bytes, start, end, name = "") {
    this.bytes = bytes;
    this.start = start;
    this.end = end;
    this.name = name;
  }
  get length() { return this.end - this.start; }
  /** @param {number} at @returns {number} */
  u8(at) { return this.start + at < this.end ? this.bytes[this.start + at] : 0; }
  /** @param {number} at @returns {number} */
  u16(at) { return this.u8(at) * 256 + this.u8(at + 1); }
  /** @param {number} at @returns {number} */
  u32(at) { return this.u16(at) * 65536 + this.u16(at + 2); }
  /** @param {number} at @returns {string} */
  type(at) { return String.fromCharCode(this.u8(at), this.u8(at + 1), this.u8(at + 2), this.u8(at + 3)); }
}

/** @param {Uint8Array} bytes */
export const whole = (bytes) => new Region(bytes, 0, bytes.length);

/**
 * @param {Uint8Array} bytes
 * @param {number} at
 * @param {number} end
 * @returns {{type: string, size: number, header: number} | null} Null while the header is incomplete.
 */
function boxAt(bytes, at, end) {
  if (at + 8 > end) return null;
  const region = new Region(bytes, at, end);
  const size = region.u32(0);
  if (size !== 1) return { type: region.type(4), size, header: 8 };
  if (at + 16 > end) return null;
  return { type: region.type(4), size: region.u32(8) * 2 ** 32 + region.u32(12), header: 16 };
}

/** @param {Region} region @returns {Region[]} */
export function children(region) {
  const found = [];
  let at = region.start;
  for (;;) {
    const box = boxAt(region.bytes, at, region.end);
    if (box === null || box.size < box.header || at + box.size > region.end) return found;
    found.push(new Region(region.bytes, at + box.header, at + box.size, box.type));
    at += box.size;
  }
}

/** @param {Region} region @param {string[]} path @returns {Region[]} */
export function find(region, ...path) {
  let level = [region];
  for (const name of path) level = level.flatMap((r) => children(r).filter((c) => c.name === name));
  return level;
}

/** @param {Region} region @param {string[]} path @returns {Region | undefined} */
export const first = (region, ...path) => find(region, ...path)[0];
