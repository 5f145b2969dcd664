/** The picture of a recording at a place of its seek bar: the key frame before it, by the recording's I-frame playlist. */

import { MediaSourceClass, mimeType } from "../media/codecs.js";
import { fetchBytes, timeout } from "../media/fetching.js";
import { make } from "../ui/dom.js";

const TIMEOUT_MILLISECONDS = 8000;
/** Key frames that are kept as they came. */
const KEPT = 60;
const VIDEO = /^(avc|hev|hvc|av01|vp0)/;

/** @typedef {{start: number, url: string, length: number, init: string}} KeyFrame `start`: seconds of the recording. */

export class SeekPictures {
  element = /** @type {HTMLVideoElement} */ (make("video", "seek-picture"));
  /** @type {{playlist: string, codec: string} | null} Null without a recording that has such pictures. */
  #source = null;
  /** @type {Promise<KeyFrame[]> | null} Requested when the first picture is wanted. */
  #frames = null;
  /** @type {Map<string, Uint8Array>} */
  #kept = new Map();
  /** @type {number | null} Seconds of the recording; null while none is wanted. */
  #wanted = null;
  #isBusy = false;
  /** @type {KeyFrame | null} */
  #shown = null;
  #init = "";
  /** @type {SourceBuffer | null} */
  #buffer = null;
  /** @type {MediaSource | null} */
  #media = null;

  constructor() {
    this.element.muted = true;
    this.element.playsInline = true;
    this.element.tabIndex = -1;
    this.element.setAttribute("aria-hidden", "true");
    this.element.hidden = true;
  }

  /** @param {string} address The recording's, without an ending. @param {string[]} codecs RFC 6381. */
  open(address, codecs) {
    this.close();
    const codec = codecs.find((c) => VIDEO.test(c));
    if (codec === undefined || !MediaSourceClass?.isTypeSupported(mimeType([codec]))) return;
    this.#source = { playlist: new URL(`${address}/video/iframes.m3u8`, location.href).href, codec };
  }

  close() {
    this.hide();
    this.#source = null;
    this.#frames = null;
    this.#kept.clear();
    this.#shown = null;
    this.#init = "";
    this.#buffer = null;
    this.#media = null;
    if (this.element.src !== "") {
      URL.revokeObjectURL(this.element.src);
      this.element.removeAttribute("src");
      this.element.load();
    }
  }

  hide() {
    this.#wanted = null;
    this.element.hidden = true;
  }

  /** @param {number} time Seconds of the recording. */
  async show(time) {
    this.#wanted = time;
    if (this.#shown !== null) this.element.hidden = false;
    if (this.#isBusy || this.#source === null) return;
    this.#isBusy = true;
    try {
      for (let tried = null; this.#wanted !== null && this.#wanted !== tried;) {
        tried = this.#wanted;
        await this.#present(tried);
      }
    } catch {
      // The bar works without pictures.
      this.element.hidden = true;
    } finally {
      this.#isBusy = false;
    }
  }

  /** @param {number} time */
  async #present(time) {
    const source = this.#source;
    if (source === null) return;
    this.#frames ??= readFrames(source.playlist);
    const frames = await this.#frames;
    const frame = frames.findLast((f) => f.start <= time + 1e-3) ?? frames[0];
    if (frame === undefined || frame === this.#shown) return;
    const bytes = await this.#fetch(frame.url, { offset: 0, length: frame.length });
    const init = frame.init === this.#init ? null : await this.#fetch(frame.init, null);
    const buffer = await this.#open(source.codec);
    if (this.#source !== source) return;
    if (buffer.buffered.length > 0) {
      buffer.remove(0, Infinity);
      await settled(buffer);
    }
    if (init !== null) {
      buffer.appendBuffer(init);
      await settled(buffer);
      this.#init = frame.init;
    }
    buffer.appendBuffer(firstSample(bytes));
    await settled(buffer);
    // The decoder gives its frame away without waiting for another.
    if (this.#media?.readyState === "open") this.#media.endOfStream();
    if (buffer.buffered.length === 0) return;
    this.element.currentTime = (buffer.buffered.start(0) + buffer.buffered.end(0)) / 2;
    this.#shown = frame;
    this.element.dataset.at = frame.start.toFixed(3);
    this.element.hidden = this.#wanted === null;
  }

  /** @param {string} url @param {{offset: number, length: number} | null} range */
  async #fetch(url, range) {
    const known = this.#kept.get(url);
    if (known !== undefined) return known;
    const bytes = await fetchBytes({ url, range }, timeout(TIMEOUT_MILLISECONDS));
    if (this.#kept.size >= KEPT) this.#kept.delete(this.#kept.keys().next().value ?? "");
    this.#kept.set(url, bytes);
    return bytes;
  }

  /** @param {string} codec @returns {Promise<SourceBuffer>} */
  async #open(codec) {
    if (this.#buffer !== null) return this.#buffer;
    if (MediaSourceClass === null) throw new Error("this browser has no Media Source Extensions");
    const media = new MediaSourceClass();
    this.#media = media;
    this.element.src = URL.createObjectURL(media);
    await new Promise((resume) => media.addEventListener("sourceopen", resume, { once: true }));
    this.#buffer = media.addSourceBuffer(mimeType([codec]));
    return this.#buffer;
  }
}

/** @param {SourceBuffer} buffer @returns {Promise<void>} */
const settled = (buffer) => new Promise((resume, refuse) => {
  if (!buffer.updating) return resume();
  buffer.addEventListener("updateend", () => resume(), { once: true });
  buffer.addEventListener("error", () => refuse(new Error("the key frame cannot be used")), { once: true });
});

/** @param {string} url @returns {Promise<KeyFrame[]>} RFC 8216bis §4.4.3.6: ranges of segments, which last until the next one. */
async function readFrames(url) {
  const response = await fetch(url, { signal: timeout(TIMEOUT_MILLISECONDS) });
  if (!response.ok) throw new Error(`${url} responded with status ${response.status}`);
  const frames = [];
  let at = 0, duration = 0, length = 0, init = "";
  for (const line of (await response.text()).split("\n")) {
    const map = /^#EXT-X-MAP:URI="([^"]*)"/.exec(line);
    if (map !== null) init = new URL(map[1], url).href;
    else if (line.startsWith("#EXTINF:")) duration = Number.parseFloat(line.slice(8));
    else if (line.startsWith("#EXT-X-BYTERANGE:")) length = Number.parseInt(line.slice(17), 10);
    else if (line !== "" && !line.startsWith("#")) {
      if (length > 0 && init !== "") frames.push({ start: at, url: new URL(line, url).href, length, init });
      at += duration;
      length = 0;
    }
  }
  return frames;
}

/**
 * Makes a whole fragment of the beginning of one: its first sample alone.
 * @param {Uint8Array} bytes A `moof`, and a `mdat` as far as its first sample.
 */
function firstSample(bytes) {
  const whole = bytes.slice();
  const view = new DataView(whole.buffer);
  const visit = (/** @type {number} */ from, /** @type {number} */ to) => {
    for (let at = from; at + 8 <= to;) {
      const size = view.getUint32(at);
      const type = String.fromCharCode(...whole.subarray(at + 4, at + 8));
      if (size < 8) return;
      if (type === "mdat") return view.setUint32(at, whole.length - at);
      const end = Math.min(to, at + size);
      if (type === "moof" || type === "traf") visit(at + 8, end);
      else if (type === "trun" && at + 16 <= end) view.setUint32(at + 12, 1);
      at += size;
    }
  };
  visit(0, whole.length);
  return whole;
}
