/** Closed captions in fragments of MP4: what CEA-608 and CEA-708 have in messages of H.264 and HEVC (ATSC A/53-4 §6.2.3). */

import { children, find, first, whole } from "./boxes.js";

/** @typedef {import("./boxes.js").InitTrack} InitTrack */
/** @typedef {[field: 1 | 2, first: number, second: number]} Pair Two bytes with parity, and the field of line 21 that they are of. */
/** @typedef {[begins: boolean, first: number, second: number]} PacketPair Two bytes of a packet of CEA-708. */
/**
 * @typedef {object} CaptionPairs Pairs of one frame: of both fields of CEA-608, and of CEA-708.
 * @property {number} decode Seconds.
 * @property {number} time When the frame is shown, in seconds.
 * @property {Pair[]} pairs
 * @property {PacketPair[]} packets
 */
/** @typedef {Pick<CaptionPairs, "pairs" | "packets">} Found */

/** Bytes of one unit of messages that are read. */
const MESSAGE_BYTES = 512;
/** Frames of one append that are read. */
const MAXIMUM_FRAMES = 10_000;

/**
 * @param {Uint8Array} bytes Whole fragments.
 * @param {InitTrack[]} tracks
 * @returns {CaptionPairs[]} One for each frame of the first video track, in decode order.
 */
export function captionPairs(bytes, tracks) {
  const video = tracks.find((track) => track.kind === "video");
  const header = video === undefined ? 0 : video.codec.startsWith("avc") ? 1 : /^h(vc|ev)1/.test(video.codec) ? 2 : 0;
  if (video === undefined || header === 0) return [];
  /** @type {CaptionPairs[]} */
  const frames = [];
  for (const moof of find(whole(bytes), "moof")) {
    for (const traf of find(moof, "traf")) {
      const tfhd = first(traf, "tfhd"), tfdt = first(traf, "tfdt");
      if (tfhd === undefined || tfdt === undefined || tfhd.u32(4) !== video.id) continue;
      let decode = tfdt.u8(0) === 1 ? tfdt.u32(4) * 2 ** 32 + tfdt.u32(8) : tfdt.u32(4);
      const defaults = defaultsOf(tfhd);
      for (const trun of children(traf).filter((box) => box.name === "trun")) {
        for (const sample of samples(trun, defaults, moof.start - 8)) {
          if (frames.length >= MAXIMUM_FRAMES) return frames;
          const found = pairsOf(bytes.subarray(sample.at, sample.at + sample.size), header);
          frames.push({ decode: decode / video.timescale, time: (decode + sample.offset) / video.timescale, ...found });
          decode += sample.duration;
        }
      }
    }
  }
  return frames;
}

/** @param {import("./boxes.js").Region} tfhd Its default duration and size (ISO/IEC 14496-12 §8.8.7). */
function defaultsOf(tfhd) {
  const flags = tfhd.u32(0) % 2 ** 24;
  let at = 8 + (flags & 1 ? 8 : 0) + (flags & 2 ? 4 : 0);
  const duration = flags & 8 ? tfhd.u32(at) : 0;
  if (flags & 8) at += 4;
  return { duration, size: flags & 16 ? tfhd.u32(at) : 0 };
}

/**
 * @param {import("./boxes.js").Region} trun
 * @param {{duration: number, size: number}} defaults
 * @param {number} base Where the moof begins.
 */
function* samples(trun, defaults, base) {
  const flags = trun.u32(0) % 2 ** 24;
  let at = 8, place = base + (flags & 1 ? trun.u32(at) | 0 : 0);
  at += (flags & 1 ? 4 : 0) + (flags & 4 ? 4 : 0);
  const count = trun.u32(4), each = [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length * 4;
  for (let n = 0; n < count && (each === 0 || at + each <= trun.length); n += 1) {
    /** @type {(flag: number, otherwise: number) => number} */
    const next = (flag, otherwise) => {
      if (!(flags & flag)) return otherwise;
      at += 4;
      return trun.u32(at - 4);
    };
    const duration = next(0x100, defaults.duration), size = next(0x200, defaults.size);
    next(0x400, 0);
    const offset = next(0x800, 0);
    if (size === 0 || place < 0 || place + size > trun.bytes.length) return;
    yield { at: place, size, duration, offset: trun.u8(0) === 0 ? offset : offset | 0 };
    place += size;
  }
}

/** @param {Uint8Array} sample @param {number} header Bytes of a unit's header. @returns {Found} */
function pairsOf(sample, header) {
  /** @type {Found} */
  const found = { pairs: [], packets: [] };
  for (let at = 0; at + 4 + header < sample.length;) {
    const size = ((sample[at] * 256 + sample[at + 1]) * 256 + sample[at + 2]) * 256 + sample[at + 3];
    const kind = header === 1 ? sample[at + 4] & 31 : sample[at + 4] >> 1 & 63;
    if (size === 0 || at + 4 + size > sample.length) break;
    if (kind === (header === 1 ? 6 : 39)) {
      readMessages(withoutEmulation(sample.subarray(at + 4 + header, at + 4 + Math.min(size, MESSAGE_BYTES))), found);
    }
    at += 4 + size;
  }
  return found;
}

/** @param {Uint8Array} unit @returns {number[]} Without the bytes that prevent start codes (H.264 §7.4.1). */
function withoutEmulation(unit) {
  const out = [];
  let zeros = 0;
  for (const byte of unit) {
    if (zeros >= 2 && byte === 3) zeros = 0;
    else {
      out.push(byte);
      zeros = byte === 0 ? zeros + 1 : 0;
    }
  }
  return out;
}

/** @param {number[]} bytes Messages. @param {Found} found Gets what is found. */
function readMessages(bytes, found) {
  let at = 0;
  const number = () => {
    let value = 0;
    while (at < bytes.length && bytes[at] === 255) { value += 255; at += 1; }
    value += bytes[at] ?? 0;
    at += 1;
    return value;
  };
  while (at + 2 < bytes.length) {
    const type = number(), size = number();
    if (type === 4) readUserData(bytes.slice(at, at + size), found);
    at += size;
  }
}

/** @param {number[]} data @param {Found} found */
function readUserData(data, found) {
  // United States, ATSC, "GA94", cc_data that is to be processed.
  const wanted = [0xb5, 0, 0x31, 0x47, 0x41, 0x39, 0x34, 3];
  if (wanted.some((byte, n) => data[n] !== byte) || !(data[8] & 0x40)) return;
  for (let n = 0, at = 10; n < (data[8] & 31) && at + 2 < data.length; n += 1, at += 3) {
    // Valid, of a field; or of a packet, which begins with a pair of its own kind.
    const kind = data[at] & 7;
    if (kind === 4 || kind === 5) found.pairs.push([kind === 4 ? 1 : 2, data[at + 1], data[at + 2]]);
    if (kind === 6 || kind === 7) found.packets.push([kind === 7, data[at + 1], data[at + 2]]);
  }
}
