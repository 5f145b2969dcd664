/** RFC 6381 codec strings: how to make them from sample entries, their names, and which ones this browser plays. */

/** @typedef {import("./boxes.js").Region} Region */

/** @param {number} value */
const hex = (value) => value.toString(16).padStart(2, "0");

/**
 * @param {string} entry The sample entry's four-character code.
 * @param {Region[]} boxes The boxes inside the entry.
 * @returns {string}
 */
export function codecString(entry, boxes) {
  /** @param {string} name */
  const box = (name) => boxes.find((b) => b.name === name);
  const avcC = box("avcC"), hvcC = box("hvcC"), av1C = box("av1C"), vpcC = box("vpcC"), esds = box("esds");
  if (avcC) return `${entry}.${hex(avcC.u8(1))}${hex(avcC.u8(2))}${hex(avcC.u8(3))}`;
  if (hvcC) return hevcString(entry, hvcC);
  if (av1C) return av1String(entry, av1C);
  if (vpcC) return vp9String(entry, vpcC);
  if (esds) return mpeg4AudioString(entry, esds);
  return entry === "Opus" ? "opus" : entry === "fLaC" ? "flac" : entry;
}

/**
 * ISO/IEC 14496-15 Annex E.3.
 * @param {string} entry @param {Region} hvcC
 */
function hevcString(entry, hvcC) {
  const profile = hvcC.u8(1);
  const space = ["", "A", "B", "C"][profile >> 6];
  const tier = profile & 0x20 ? "H" : "L";
  let compatibility = 0;
  const flags = hvcC.u32(2);
  for (let bit = 0; bit < 32; bit += 1) if (flags / 2 ** bit & 1) compatibility += 2 ** (31 - bit);
  const constraints = [6, 7, 8, 9, 10, 11].map((at) => hvcC.u8(at));
  while (constraints.length > 0 && constraints[constraints.length - 1] === 0) constraints.pop();
  const fields = [`${space}${profile & 31}`, compatibility.toString(16), `${tier}${hvcC.u8(12)}`];
  return [entry, ...fields, ...constraints.map((c) => c.toString(16))].join(".");
}

/**
 * AV1 in ISOBMFF §5.
 * @param {string} entry @param {Region} av1C
 */
function av1String(entry, av1C) {
  const profile = av1C.u8(1) >> 5, level = av1C.u8(1) & 31;
  const tier = av1C.u8(2) & 0x80 ? "H" : "M";
  const highDepth = av1C.u8(2) & 0x40, twelve = av1C.u8(2) & 0x20;
  const depth = highDepth ? (profile === 2 && twelve ? "12" : "10") : "08";
  return `${entry}.${profile}.${String(level).padStart(2, "0")}${tier}.${depth}`;
}

/**
 * VP Codec ISO Media File Format Binding: the box has a version and flags before its fields.
 * @param {string} entry @param {Region} vpcC
 */
function vp9String(entry, vpcC) {
  return [entry, vpcC.u8(4), vpcC.u8(5), vpcC.u8(6) >> 4]
    .map((field) => String(field).padStart(2, "0")).join(".");
}

/**
 * ISO/IEC 14496-1 §7.2.6: the descriptors inside esds.
 * @param {string} entry @param {Region} esds
 */
function mpeg4AudioString(entry, esds) {
  let at = 4;
  const header = () => {
    const tag = esds.u8(at);
    at += 1;
    for (let n = 0; n < 4; n += 1) {
      at += 1;
      if (!(esds.u8(at - 1) & 0x80)) break;
    }
    return tag;
  };
  if (header() !== 3) return entry;
  const flags = esds.u8(at + 2);
  at += 3;
  if (flags & 0x80) at += 2;
  if (flags & 0x40) at += 1 + esds.u8(at);
  if (flags & 0x20) at += 2;
  if (header() !== 4) return entry;
  const objectType = esds.u8(at);
  at += 13;
  if (objectType !== 0x40 || header() !== 5) return `${entry}.${hex(objectType)}`;
  const short = esds.u8(at) >> 3;
  const audioObject = short === 31 ? 32 + ((esds.u8(at) & 7) << 3 | esds.u8(at + 1) >> 5) : short;
  return `${entry}.40.${audioObject}`;
}

/** @param {string} codec RFC 6381 string. @returns {string} The usual name. */
export function codecName(codec) {
  const parts = codec.toLowerCase().split(".");
  switch (parts[0]) {
    case "avc1": case "avc3": return "H.264";
    case "hvc1": case "hev1": return "HEVC";
    case "dvh1": case "dvhe": return "Dolby Vision";
    case "av01": return "AV1";
    case "vp08": return "VP8";
    case "vp09": return "VP9";
    case "opus": return "Opus";
    case "flac": return "FLAC";
    case "ac-3": return "AC-3";
    case "ec-3": return "E-AC-3";
    case "mp4a":
      if (parts[1] === "6b" || parts[1] === "69") return "MP3";
      return { 5: "HE-AAC", 29: "HE-AAC v2" }[Number(parts[2])] ?? "AAC";
    default: return codec;
  }
}

/** @param {string} codec */
const isAudio = (codec) => /^(mp4a|opus|flac|ac-3|ec-3)/i.test(codec);

/** @param {string[]} codecs @returns {string} The MIME type of an MP4 with all of them. */
export function mimeType(codecs) {
  return `${codecs.every(isAudio) ? "audio" : "video"}/mp4; codecs="${codecs.join(",")}"`;
}

/** The browser's Media Source Extensions. iPhones have only ManagedMediaSource. */
export const MediaSourceClass = globalThis.ManagedMediaSource ?? globalThis.MediaSource ?? null;

/** @param {string[]} codecs @returns {string[]} Those that this browser's Media Source Extensions do not support. */
export const unplayable = (codecs) =>
  codecs.filter((codec) => MediaSourceClass === null || !MediaSourceClass.isTypeSupported(mimeType([codec])));
