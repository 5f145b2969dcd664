/** QR codes (ISO/IEC 18004) of short texts: byte mode, versions 1 to 10, error correction level M, or L where M has no room. */

/** Blocks by version, from 1: `check` codewords for correction in each, and the data codewords of the blocks. (ISO/IEC 18004, table 9) */
const LEVELS = [
  { name: "M", bits: 0b00, check: [10, 16, 26, 18, 24, 16, 18, 22, 22, 26], blocks: [
    [16], [28], [44], [32, 32], [43, 43], [27, 27, 27, 27], [31, 31, 31, 31], [38, 38, 39, 39], [36, 36, 36, 37, 37],
    [43, 43, 43, 43, 44],
  ] },
  { name: "L", bits: 0b01, check: [7, 10, 15, 20, 26, 18, 20, 24, 30, 18], blocks: [
    [19], [34], [55], [80], [108], [68, 68], [78, 78], [97, 97], [116, 116], [68, 68, 69, 69],
  ] },
];
const LARGEST_VERSION = 10;
/** Centres of alignment patterns by version, from 1. (Annex E) */
const ALIGNMENT = [[], [6, 18], [6, 22], [6, 26], [6, 30], [6, 34], [6, 22, 38], [6, 24, 42], [6, 26, 46], [6, 28, 50]];
/** Whether a mask inverts the module at a row and column. (table 10) */
const MASKS = [
  (/** @type {number} */ i, /** @type {number} */ j) => (i + j) % 2 === 0,
  (/** @type {number} */ i) => i % 2 === 0,
  (/** @type {number} */ _, /** @type {number} */ j) => j % 3 === 0,
  (/** @type {number} */ i, /** @type {number} */ j) => (i + j) % 3 === 0,
  (/** @type {number} */ i, /** @type {number} */ j) => (Math.floor(i / 2) + Math.floor(j / 3)) % 2 === 0,
  (/** @type {number} */ i, /** @type {number} */ j) => i * j % 2 + i * j % 3 === 0,
  (/** @type {number} */ i, /** @type {number} */ j) => (i * j % 2 + i * j % 3) % 2 === 0,
  (/** @type {number} */ i, /** @type {number} */ j) => ((i + j) % 2 + i * j % 3) % 2 === 0,
];
const BYTE_MODE = 0b0100;

/** @typedef {boolean[][]} Modules Rows of dark (true) and light modules, without the quiet zone of 4 modules. */

/** @param {string} text @returns {Modules | null} Null if the text is too long: level L of version 10 has room for 271 bytes. */
export function qrCode(text) {
  const bytes = new TextEncoder().encode(text);
  for (const level of LEVELS) {
    for (let version = 1; version <= LARGEST_VERSION; version += 1) {
      const blocks = level.blocks[version - 1];
      const room = blocks.reduce((a, b) => a + b);
      if (12 + (version > 9 ? 8 : 0) + 8 * bytes.length <= 8 * room) {
        return drawn(version, level.bits, interleaved(codewords(bytes, version, room), blocks, level.check[version - 1]));
      }
    }
  }
  return null;
}

/**
 * Mode, length, bytes, end and padding. (§7.4)
 * @param {Uint8Array} bytes
 * @param {number} version
 * @param {number} room
 */
function codewords(bytes, version, room) {
  /** @type {number[]} */
  const bits = [];
  const put = (/** @type {number} */ value, /** @type {number} */ length) => {
    for (let n = length - 1; n >= 0; n -= 1) bits.push(value >> n & 1);
  };
  put(BYTE_MODE, 4);
  put(bytes.length, version > 9 ? 16 : 8);
  for (const byte of bytes) put(byte, 8);
  put(0, Math.min(4, 8 * room - bits.length));
  put(0, -bits.length & 7);
  for (let n = 0; bits.length < 8 * room; n += 1) put(n % 2 === 0 ? 0xec : 0x11, 8);
  return Array.from({ length: room }, (_, n) => bits.slice(8 * n, 8 * n + 8).reduce((value, bit) => value * 2 + bit, 0));
}

/** @param {number[]} data @param {number[]} lengths Data codewords of the blocks. @param {number} check */
function interleaved(data, lengths, check) {
  let at = 0;
  const blocks = lengths.map((length) => data.slice(at, at += length));
  const corrections = blocks.map((block) => correction(block, check));
  const longest = Math.max(...lengths);
  return [
    ...Array.from({ length: longest }, (_, n) => blocks.flatMap((block) => block.slice(n, n + 1))).flat(),
    ...Array.from({ length: check }, (_, n) => corrections.map((block) => block[n])).flat(),
  ];
}

/** Powers of 2 in the field of 256 elements with the polynomial 0x11d, and their logarithms. (§7.5.2) */
const POWERS = new Uint8Array(510), LOGARITHMS = new Uint8Array(256);
for (let n = 0, value = 1; n < 255; n += 1) {
  POWERS[n] = POWERS[n + 255] = value;
  LOGARITHMS[value] = n;
  value = value << 1 ^ (value & 0x80 ? 0x11d : 0);
}

/**
 * Reed-Solomon: the remainder of the data by the generator of this degree.
 * @param {number[]} data
 * @param {number} degree
 */
function correction(data, degree) {
  const multiply = (/** @type {number} */ a, /** @type {number} */ b) => a && b ? POWERS[LOGARITHMS[a] + LOGARITHMS[b]] : 0;
  let generator = [1];
  for (let n = 0; n < degree; n += 1) {
    generator = [...generator, 0].map((term, i) => term ^ (i > 0 ? multiply(generator[i - 1], POWERS[n]) : 0));
  }
  const rest = [...data, ...new Array(degree).fill(0)];
  data.forEach((_, n) => {
    const lead = rest[n];
    generator.forEach((term, i) => { rest[n + i] ^= multiply(term, lead); });
  });
  return rest.slice(data.length);
}

/** @param {number} version @param {number} level @param {number[]} words @returns {Modules} With the mask that reads best. */
function drawn(version, level, words) {
  const size = 17 + 4 * version;
  /** @type {(boolean | null)[][]} Null where data go. */
  const frame = Array.from({ length: size }, () => new Array(size).fill(null));
  drawPatterns(frame, version);
  const results = MASKS.map((mask, number) => {
    const modules = frame.map((row) => [...row]);
    drawFormat(modules, level << 3 | number);
    drawData(modules, words, mask);
    return /** @type {Modules} */ (modules);
  });
  const penalties = results.map(penalty);
  return results[penalties.indexOf(Math.min(...penalties))];
}

/**
 * Finders, timing, alignment, and the version from 7 on. (§6.3, §7.10)
 * @param {(boolean | null)[][]} frame
 * @param {number} version
 */
function drawPatterns(frame, version) {
  const size = frame.length;
  for (const [top, left] of [[3, 3], [3, size - 4], [size - 4, 3]]) {
    for (let i = -4; i <= 4; i += 1) {
      for (let j = -4; j <= 4; j += 1) {
        const ring = Math.max(Math.abs(i), Math.abs(j));
        const row = frame[top + i];
        if (row !== undefined && left + j >= 0 && left + j < size) row[left + j] = ring !== 2 && ring !== 4;
      }
    }
  }
  for (let n = 8; n < size - 8; n += 1) frame[6][n] = frame[n][6] = n % 2 === 0;
  const centres = ALIGNMENT[version - 1];
  for (const row of centres) {
    for (const column of centres) {
      if (isFinder(row, column, size)) continue;
      for (let i = -2; i <= 2; i += 1) {
        for (let j = -2; j <= 2; j += 1) frame[row + i][column + j] = Math.max(Math.abs(i), Math.abs(j)) !== 1;
      }
    }
  }
  if (version < 7) return;
  const bits = version << 12 | remainder(version << 12, 0x1f25, 12);
  for (let n = 0; n < 18; n += 1) {
    const [row, column] = [Math.floor(n / 3), size - 11 + n % 3];
    frame[row][column] = frame[column][row] = (bits >> n & 1) === 1;
  }
}

/** @param {number} row @param {number} column @param {number} size */
const isFinder = (row, column, size) => (row < 9 && (column < 9 || column > size - 10)) || (row > size - 10 && column < 9);

/**
 * Level and mask, twice, and the dark module. (§7.9)
 * @param {(boolean | null)[][]} modules
 * @param {number} format
 */
function drawFormat(modules, format) {
  const size = modules.length;
  const bits = (format << 10 | remainder(format << 10, 0x537, 10)) ^ 0x5412;
  for (let n = 0; n < 15; n += 1) {
    const isDark = (bits >> n & 1) === 1;
    const along = n < 6 ? n : n < 8 ? n + 1 : size - 15 + n;
    modules[along][8] = isDark;
    modules[8][n < 8 ? size - 1 - n : n === 8 ? 7 : 14 - n] = isDark;
  }
  modules[size - 8][8] = true;
}

/**
 * The remainder of a binary polynomial.
 * @param {number} value
 * @param {number} divisor
 * @param {number} degree Of the divisor.
 */
function remainder(value, divisor, degree) {
  let rest = value;
  for (let n = 31 - Math.clz32(rest); n >= degree; n = 31 - Math.clz32(rest)) rest ^= divisor << n - degree;
  return rest;
}

/**
 * In pairs of columns from the right, up and down in turn. (§7.7.3)
 * @param {(boolean | null)[][]} modules
 * @param {number[]} words
 * @param {(row: number, column: number) => boolean} mask
 */
function drawData(modules, words, mask) {
  const size = modules.length;
  let at = 0;
  for (let right = size - 1, pair = 0; right > 0; right -= 2, pair += 1) {
    if (right === 6) right -= 1;
    for (let n = 0; n < size; n += 1) {
      const row = pair % 2 === 0 ? size - 1 - n : n;
      for (const column of [right, right - 1]) {
        if (modules[row][column] !== null) continue;
        const bit = at < 8 * words.length && (words[at >> 3] >> 7 - (at & 7) & 1) === 1;
        modules[row][column] = bit !== mask(row, column);
        at += 1;
      }
    }
  }
}

/**
 * How hard it is to read: runs, blocks, patterns like finders, and too much of one colour. (§7.8.3)
 * @param {Modules} modules
 */
function penalty(modules) {
  const size = modules.length;
  const columns = modules.map((_, n) => modules.map((row) => row[n]));
  let sum = 0;
  for (const line of [...modules, ...columns]) {
    const text = line.map((isDark) => isDark ? "1" : "0").join("");
    for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) sum += run.length - 2;
    for (const pattern of ["10111010000", "00001011101"]) {
      for (let at = text.indexOf(pattern); at >= 0; at = text.indexOf(pattern, at + 1)) sum += 40;
    }
  }
  for (let row = 1; row < size; row += 1) {
    for (let column = 1; column < size; column += 1) {
      const isDark = modules[row][column];
      if (isDark === modules[row - 1][column] && isDark === modules[row][column - 1] && isDark === modules[row - 1][column - 1]) sum += 3;
    }
  }
  const dark = modules.flat().filter(Boolean).length / (size * size);
  return sum + 10 * Math.floor(Math.abs(dark - 0.5) * 20);
}
