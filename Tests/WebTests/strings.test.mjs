// Texts of the pages: all stand in the files of web/strings, in every language, and each of them is used.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../web", import.meta.url));
const ROOMS = readdirSync(WEB, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name);
const files = (ending) => ROOMS.flatMap((room) =>
  readdirSync(join(WEB, room)).filter((file) => file.endsWith(ending)).map((file) => `${room}/${file}`));
const read = (file) => readFileSync(join(WEB, file), "utf8");
const languages = Object.fromEntries(files(".json").map((file) => [file.slice(-7, -5), JSON.parse(read(file))]));
/** Without comments. */
const code = (file) => read(file).replace(/\/\*[^]*?\*\//g, "").replace(/^\s*\/\/.*|\s\/\/ .*/gm, "");
const scripts = files(".js").filter((file) => !file.startsWith("strings/"));
const LETTERS = /\p{L}{2}/u;

/** Texts that are names, and the same in each language. */
const NAMES = new Set([
  "weir", "Shift", "Home", "End", "Space", "VLC", "DASH", "OBS", "ffplay", "HLS", "MP4", "RTMP", "RTMPS", "SRT", "stream.mp4",
]);
/** What the markup of a page shows without a script: those who have none cannot load texts. */
const withoutScripts = /<noscript>[^]*?<\/noscript>|<!--[^]*?-->/g;

test("every language has the same texts, with the same values in them", () => {
  assert.deepEqual(Object.keys(languages).sort(), ["de", "en"]);
  const values = (text) => [...text.matchAll(/\{\w+\}/g)].map(([value]) => value).sort();
  for (const [language, texts] of Object.entries(languages)) {
    assert.deepEqual(Object.keys(texts), Object.keys(languages.en), language);
    for (const [key, text] of Object.entries(texts)) {
      assert.ok(text !== "" && typeof text === "string", `${language} ${key}`);
      assert.deepEqual(values(text), values(languages.en[key]), `${language} ${key}`);
    }
  }
});

test("every text that a page asks for is there, and every one is asked for", () => {
  const keys = new Set(Object.keys(languages.en).map((key) => key.replace(/\.(one|other|few|many|two|zero)$/, "")));
  const asked = new Set(), families = [];
  for (const page of files(".html")) {
    for (const [, key] of read(page).matchAll(/ data-(?:text|label|hint|placeholder)="([^"]*)"/g)) asked.add(key);
  }
  for (const script of scripts) {
    const text = code(script);
    for (const [, key] of text.matchAll(/"([a-z][A-Za-z]*\.[A-Za-z.]+)"/g)) if (keys.has(key)) asked.add(key);
    for (const [, key] of text.matchAll(/\b(?:t|many)\(\s*"([^"]+)"/g)) assert.ok(keys.has(key), `${script} asks for ${key}`);
    for (const [, start] of text.matchAll(/\b(?:t|many)\(\s*`([^$`]+)\$\{/g)) families.push(start);
  }
  for (const key of asked) assert.ok(keys.has(key), key);
  for (const start of families) assert.ok([...keys].some((key) => key.startsWith(start)), start);
  const unused = [...keys].filter((key) => !asked.has(key) && !families.some((start) => key.startsWith(start)));
  assert.deepEqual(unused, []);
});

test("no page has a text outside of the files", () => {
  const found = [];
  for (const page of files(".html")) {
    const markup = read(page).replace(withoutScripts, "");
    const texts = [...markup.matchAll(/>([^<]+)</g)].map(([, text]) => text.trim());
    const attributes = [...markup.matchAll(/ (?:aria-label|title|placeholder|alt)="([^"]*)"/g)].map(([, text]) => text);
    found.push(...[...texts, ...attributes].filter((text) => LETTERS.test(text) && !NAMES.has(text)).map((text) => `${page}: ${text}`));
  }
  assert.deepEqual(found, []);
});

test("no script has a text outside of the files", () => {
  /** What reads like a text for people: it begins with a capital letter, or has three words. */
  const isText = (text) => /^\p{Lu}\p{Ll}+( |$|[.,:!?])/u.test(text) || /^\p{Ll}+ \p{Ll}+ \p{Ll}+/u.test(text);
  const passed = /new \w*Error\(|console\.|key ===|case "|closest\(|matches\(|querySelector|addEventListener|STEPS|headers|Header|keyshortcuts|\.name ===|KEYS|Bearer/;
  const found = [];
  for (const script of scripts.filter((s) => !s.startsWith("engine/") && !s.startsWith("media/"))) {
    for (const line of code(script).split("\n")) {
      if (passed.test(line)) continue;
      // The classes of an element are no text.
      const rest = line.replace(/\bmake\("\w+", "[^"]*"/g, "").replace(/(className|class)\b.*$/, "").replace(/^import .*/, "");
      const texts = [...rest.matchAll(/"([^"\\]*)"|`([^`]*)`/g)].map(([, a, b]) => (a ?? b).replace(/\$\{[^}]*\}/g, ""));
      found.push(...texts.filter((text) => isText(text) && !NAMES.has(text)).map((text) => `${script}: ${text}`));
    }
  }
  assert.deepEqual(found, []);
});
