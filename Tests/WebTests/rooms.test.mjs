// Layers of web/: a folder imports only from itself and lower folders. Pages preload exactly the scripts they need at once.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../web", import.meta.url));
/** Folders from the highest layer to the lowest. Each may import those after it. Types may come from anywhere. */
const ROOMS = ["pages", "publish", "recordings", "admin", "player", "ui", "engine", "api", "media", "strings"];
/** Folders whose scripts need no document, so that they can be tested without a browser. */
const WITHOUT_DOCUMENT = ["media"];

const scripts = ROOMS.flatMap((room) =>
  readdirSync(join(WEB, room)).filter((file) => file.endsWith(".js")).map((file) => `${room}/${file}`));

/** @param {string} script @param {RegExp} form @returns {string[]} The scripts of web/ that it imports. */
const imports = (script, form) => [...readFileSync(join(WEB, script), "utf8").matchAll(form)]
  .map(([, path]) => relative(WEB, join(WEB, dirname(script), path)));
const STATIC = /^(?:import|export) [^;]*?"(\.[^"]+)";/gm;
const ANY = /(?:^(?:import|export) [^;]*?|\bawait import\()"(\.[^"]+)"/gm;

/** @param {string} script @param {Set<string>} found @returns {Set<string>} It, and all that it needs. */
function needed(script, found = new Set()) {
  if (found.has(script)) return found;
  found.add(script);
  for (const other of imports(script, STATIC)) needed(other, found);
  return found;
}

test("files have names of lower-case words", () => {
  for (const script of scripts) assert.match(script, /^[a-z]+\/[a-z]+(-[a-z]+)*\.js$/);
});

test("a room uses what stands below it", () => {
  for (const script of scripts) {
    for (const other of imports(script, ANY)) {
      const [user, used] = [script, other].map((path) => ROOMS.indexOf(path.split("/")[0]));
      assert.ok(used >= user, `${script} uses ${other}, which stands above it`);
    }
  }
});

test("the rooms without a document do not touch one", () => {
  for (const script of scripts.filter((s) => WITHOUT_DOCUMENT.includes(s.split("/")[0]))) {
    const code = readFileSync(join(WEB, script), "utf8").replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
    assert.doesNotMatch(code, /\bdocument\b|\bHTML[A-Z]\w*Element\b/, script);
  }
});

test("no two scripts need each other", () => {
  for (const script of scripts) {
    for (const other of imports(script, STATIC)) assert.ok(!needed(other).has(script), `${script} and ${other}`);
  }
});

test("a page loads what it needs at once side by side, and nothing else in advance", () => {
  for (const page of ["index", "watch", "publish", "embed", "recordings", "not-found", "no-access"]) {
    const text = readFileSync(join(WEB, "pages", `${page}.html`), "utf8");
    const scripts = [...text.matchAll(/<script [^>]*src="\/web\/([^"]+)"/g)].map((m) => m[1]);
    const preloaded = [...text.matchAll(/<link rel="modulepreload" (?:fetchpriority="low" )?href="\/web\/([^"]+)"/g)].map((m) => m[1]);
    const all = new Set(scripts.flatMap((script) => [...needed(script)]));
    assert.deepEqual([...scripts, ...preloaded].sort(), [...all].sort(), `${page}.html`);
  }
});

test("the element's entry names all scripts of the element, and nothing else", () => {
  const text = readFileSync(join(WEB, "weir-player.js"), "utf8");
  const named = [...text.matchAll(/"\.\/([^"]+)"/g)].map((m) => m[1]);
  assert.deepEqual(named.sort(), [...needed("player/weir-player.js")].sort());
});
