// Which addresses the element plays, and the code that pages copy.

import assert from "node:assert/strict";
import test from "node:test";
import { streamAddress } from "../../web/player/address.js";
import { rootOf } from "../../web/media/root.js";
import { embedCodes, srtAddress } from "../../web/ui/links.js";

const PAGE = "https://www.example.org/a/page.html";

test("a stream is found by its page or its player, with or without a token", () => {
  const cam = { root: "https://live.example.com", name: "cam" };
  for (const path of ["/watch/cam", "/embed/cam", "/watch/cam/", "/watch/cam?player=hls#x", "/watch/c%61m"]) {
    assert.deepEqual(streamAddress(cam.root + path, PAGE), cam, path);
  }
  assert.deepEqual(streamAddress(`${cam.root}/~a.b-c/watch/cam`, PAGE), { root: `${cam.root}/~a.b-c`, name: "cam" });
  assert.deepEqual(streamAddress("/embed/cam", "http://localhost:8080/x"), { root: "http://localhost:8080", name: "cam" });
});

test("a server below a path has its streams there, and others stay where they are", () => {
  const home = "https://www.example.com/media/live-1";
  assert.deepEqual(streamAddress("/media/live-1/embed/cam", "https://www.example.com/x", home), { root: home, name: "cam" });
  assert.deepEqual(streamAddress(`${home}/~a.b/watch/cam`, PAGE, home), { root: `${home}/~a.b`, name: "cam" });
  const other = { root: "https://live.example.com", name: "cam" };
  assert.deepEqual(streamAddress("https://live.example.com/watch/cam", PAGE, home), other);
  for (const text of ["/media/live-12/watch/cam", "/media/watch/cam", "/media/live-1/x/watch/cam"]) {
    assert.equal(streamAddress(text, "https://www.example.com/x", home), null, text);
  }
  assert.equal(rootOf(`${home}/web/build-0/media/root.js`), "/media/live-1");
  assert.equal(rootOf("https://www.example.com/web/media/root.js"), "");
});

test("anything else is no address of a stream", () => {
  for (const text of ["", "cam", "/live/cam/index.m3u8", "https://a.example/watch/", "https://a.example/watch/a/b", "https://a.example/watch/%",
    "https://a.example/watch/..%2Fx", "https://a.example/watch/a%20b", "javascript:alert(1)//watch/cam", "data:text/html,/watch/cam",
    "https://a.example/x/watch/cam", "https://a.example/~t/~u/watch/cam", `https://a.example/watch/${"a".repeat(65)}`]) {
    assert.equal(streamAddress(text, PAGE), null, text);
  }
});

test("the address for SRT has all that OBS and ffmpeg need, and none is shown where SRT is off", () => {
  const server = { rtmpPort: 1935, srtPort: 8890, publishKeyRequired: true, publicURL: "https://live.example.com" };
  assert.equal(srtAddress("cam?key=YOUR_KEY", server), "srt://live.example.com:8890?streamid=cam?key=YOUR_KEY&latency=200000");
  assert.equal(srtAddress("cam", { ...server, srtPort: null }), null);
});

test("code to embed names the public address, and a title stays a text in it", () => {
  const server = { rtmpPort: 1935, publishKeyRequired: false, publicURL: "https://live.example.com" };
  const { frame, element } = embedCodes("cam", '"><script>&amp;', server);
  assert.match(frame, /^<iframe src="https:\/\/live\.example\.com\/embed\/cam" title="&quot;>&lt;script>&amp;amp;" /);
  assert.match(element, /src="https:\/\/live\.example\.com\/web\/weir-player\.js"/);
  assert.match(element, /<weir-player src="https:\/\/live\.example\.com\/watch\/cam" autoplay>/);
  const below = embedCodes("cam", "cam", { ...server, publicURL: "https://example.com/weir" });
  assert.match(below.frame, /src="https:\/\/example\.com\/weir\/embed\/cam"/);
  assert.match(below.element, /src="https:\/\/example\.com\/weir\/web\/weir-player\.js"/);
});
