// QR codes of all versions, read by zbarimg (Debian's zbar-tools).

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { qrCode } from "../../web/media/qr-code.js";

/** The longest texts of versions 1 to 10, in bytes: at level M, and of the largest two at level L. (ISO/IEC 18004, table 7) */
const LONGEST = [[14, 1], [26, 2], [42, 3], [62, 4], [84, 5], [106, 6], [122, 7], [152, 8], [180, 9], [213, 10], [230, 9], [271, 10]];
const PIXELS = 4;
const QUIET = 4;

/** @param {number} length @returns {string} */
const text = (length) => "https://live.example.com/watch/cam-1?from=0123456789&to=_~.".repeat(5).slice(0, length);

/** @param {boolean[][]} modules @returns {string} A picture (PBM). */
function picture(modules) {
  const size = PIXELS * (modules.length + 2 * QUIET);
  const rows = Array.from({ length: size }, (_, y) => Array.from({ length: size }, (_, x) =>
    Number(modules[Math.floor(y / PIXELS) - QUIET]?.[Math.floor(x / PIXELS) - QUIET] ?? false)).join(" "));
  return `P1\n${size} ${size}\n${rows.join("\n")}\n`;
}

/** @param {string[]} texts @returns {string[]} What a reader finds in their codes. */
function read(texts) {
  const folder = mkdtempSync(join(tmpdir(), "weir-qr-"));
  try {
    const files = texts.map((text, n) => {
      const file = join(folder, `${String(n).padStart(3, "0")}.pbm`);
      writeFileSync(file, picture(qrCode(text) ?? []));
      return file;
    });
    const output = execFileSync("zbarimg", ["--quiet", "--raw", ...files], { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return output.trimEnd().split("\n");
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("a text has the smallest version with room for it", () => {
  for (const [length, version] of LONGEST) assert.equal(qrCode(text(length))?.length, 17 + 4 * version, `${length} bytes`);
  assert.equal(qrCode(text(1))?.length, 21);
  assert.equal(qrCode(text(15))?.length, 25);
});

test("codes of all versions are read as what was written", () => {
  const texts = [1, ...LONGEST.flatMap(([length]) => [length - 1, length])].map(text);
  assert.deepEqual(read(texts), texts);
});

test("all masks are read", () => {
  const texts = Array.from({ length: 60 }, (_, n) => `rtmp://192.0.2.${n}:1935/live/cam-${n * 7919}`);
  assert.deepEqual(read(texts), texts);
});

test("a text beyond version 10 has no code, and bytes are counted, not letters", () => {
  assert.equal(qrCode(text(272)), null);
  assert.equal(qrCode("é".repeat(136)), null);
  assert.notEqual(qrCode("é".repeat(135)), null);
});
