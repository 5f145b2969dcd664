// Which addresses the element plays, and the code that pages copy.

import assert from "node:assert/strict";
import test from "node:test";
import { streamAddress } from "../../web/player/address.js";
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
});
