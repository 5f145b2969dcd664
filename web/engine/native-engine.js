/** Playback by the browser's own HLS player. */

import { MediaSourceClass, mimeType } from "../media/codecs.js";
import { refusal } from "../media/playback-result.js";

/** @typedef {import("./engine.js").Engine} Engine */

/** A playing video whose position has not changed for this long is loaded again. */
const STUCK_MILLISECONDS = 15_000;
/** "Go live" moves to this many seconds before the end of the playlist: three segments of 2 s. */
const LIVE_DISTANCE = 6;
/** Interval at which the playlist is read for its wall-clock times while the latency is shown. */
const DATE_MILLISECONDS = 2000;

/** @implements {Engine} */
export class NativeEngine {
  /** @type {import("../media/live-window.js").Quality[]} Empty: the browser chooses. */
  qualities = [];
  quality = "";
  /** @type {import("../media/live-window.js").Audio[]} Empty: the browser chooses. */
  audios = [];
  audio = "";
  isAutomatic = true;
  name = /** @type {const} */ ("native");
  /** @type {string[]} From the multivariant playlist. */
  codecs = [];
  stalls = 0;
  #video;
  #url;
  #intent;
  #beforeReset;
  #attached = false;
  #movedAt = 0;
  #lastTime = -1;
  /** URL of the first variant's media playlist. */
  #mediaURL = "";
  #datesAt = -Infinity;
  /** Wall clock at media time 0, in milliseconds since 1970. */
  #startDate = Infinity;
  /** @type {() => void} */
  #stuck = () => {};

  /**
   * @param {HTMLVideoElement} video
   * @param {string} url URL of the multivariant playlist.
   * @param {{plays: boolean}} intent Whether the viewer wants playback.
   * @param {() => void} beforeReset Called before the element is reset, while its last frame can still be read.
   */
  constructor(video, url, intent, beforeReset) {
    this.#video = video;
    this.#url = url;
    this.#intent = intent;
    this.#beforeReset = beforeReset;
    video.addEventListener("waiting", () => {
      if (this.#attached && video.currentTime > 0 && !video.seeking && !video.paused) this.stalls += 1;
    });
  }

  static supported() {
    return document.createElement("video").canPlayType("application/vnd.apple.mpegurl") !== "";
  }

  /** @param {string[]} codecs @returns {string[]} Those that the browser's own player cannot play. */
  static unplayable(codecs) {
    const probe = document.createElement("video");
    return codecs.filter((codec) => probe.canPlayType(mimeType([codec])) === "");
  }

  /**
   * Whether this engine is the best choice in this browser. It is where the browser plays live HLS well (WebKit, which also
   * reports dates), or where there are no Media Source Extensions. Chromium's own player has seconds more latency than
   * Media Source Extensions. It cannot seek in a live stream, and reports neither its window nor its dates.
   */
  static isPreferred() {
    return NativeEngine.supported() && (MediaSourceClass === null || "getStartDate" in HTMLMediaElement.prototype);
  }

  /** Seconds between the playhead and the end of the playable media. */
  get behind() {
    const end = this.#end;
    return end === null ? 0 : Math.max(0, end - this.#video.currentTime);
  }
  /** End of the playable media. Chromium leaves `seekable` empty for a live playlist; its buffer ends with the playlist. */
  get #end() {
    const { seekable, buffered } = this.#video;
    const ranges = seekable.length > 0 ? seekable : buffered;
    return ranges.length > 0 ? ranges.end(ranges.length - 1) : null;
  }
  /** A live HLS player stays three target durations behind the end of the playlist (RFC 8216 §6.3.3). */
  get liveTolerance() { return 12; }
  /** Native players control the distance themselves. A viewer near the edge counts as following it. */
  get isFollowed() { return this.behind <= this.liveTolerance; }
  get playsFromWindow() { return false; }
  async chooseQuality() {}
  async chooseAudio() {}
  get source() { return "native HLS"; }
  get target() { return null; }
  get bytes() { return null; }
  onPlayRequest = () => {};

  /** Seconds of media that can be sought to; null where the browser does not report it. */
  get range() {
    const { seekable } = this.#video;
    const last = seekable.length - 1;
    return last < 0 || seekable.end(last) === Infinity ? null : { start: seekable.start(0), end: seekable.end(last) };
  }
  /** @param {number} time Seconds of media. @returns {number | null} Wall clock at that time, in ms since 1970. */
  dateAt(time) {
    const start = this.#video.getStartDate?.().getTime() ?? NaN;
    return Number.isFinite(start) ? start + time * 1000 : null;
  }
  /** @param {number} time Seconds of media. */
  seek(time) {
    const { range } = this;
    if (range !== null) this.#video.currentTime = Math.min(Math.max(time, range.start), range.end);
  }
  goLive() {
    const end = this.#end;
    if (end !== null) this.#video.currentTime = Math.max(0, end - LIVE_DISTANCE);
  }

  tick() {
    const now = performance.now();
    if (this.#video.currentTime !== this.#lastTime || this.#video.paused) {
      this.#lastTime = this.#video.currentTime;
      this.#movedAt = now;
    } else if (now - this.#movedAt > STUCK_MILLISECONDS) {
      this.#movedAt = now;
      this.#stuck();
    }
  }

  /**
   * @param {import("../api/api.js").Stream} stream
   * @param {number} now The server's clock, in milliseconds since 1970.
   * @returns {number | null} Seconds from the publisher to the screen.
   */
  latency(stream, now) {
    let start = this.#video.getStartDate?.().getTime() ?? NaN;
    if (!Number.isFinite(start)) {
      this.#readDates();
      start = this.#startDate;
    }
    return Number.isFinite(start) ? (now - (start + this.#video.currentTime * 1000)) / 1000 : null;
  }

  /**
   * Computes the wall clock at media time 0 where the browser does not report it. The buffer ends with the last segment of
   * the playlist. A playlist read between two reloads of the browser is one segment too new. So the smallest result counts.
   */
  async #readDates() {
    const now = performance.now();
    if (now - this.#datesAt < DATE_MILLISECONDS || this.#mediaURL === "") return;
    this.#datesAt = now;
    try {
      const response = await fetch(this.#mediaURL, { cache: "no-store" });
      const end = endDate(await response.text());
      const loaded = this.#end;
      if (!response.ok || end === null || loaded === null) return;
      this.#startDate = Math.min(this.#startDate, end - loaded * 1000);
    } catch {
      // The next call tries again.
    }
  }

  /**
   * Plays until the stream ends or fails. Resolves with the reason; never throws.
   * @param {string} publication
   * @param {AbortSignal} signal
   * @returns {Promise<import("../media/playback-result.js").PlaybackResult>}
   */
  async play(publication, signal) {
    const video = this.#video;
    try {
      const playlist = await fetch(this.#url, { cache: "no-store", signal });
      if (!playlist.ok) return await refusal(playlist);
      const text = await playlist.text();
      const variant = firstVariant(text);
      this.codecs = codecsOf(text);
      this.#mediaURL = variant === null ? "" : new URL(variant, playlist.url).href;
      this.#startDate = Infinity;
      if (await this.#isTooShort(signal)) return { kind: "tooShort" };
    } catch (error) {
      return signal.aborted ? { kind: "stopped" } : { kind: "lost", reason: error instanceof Error ? error.message : String(error) };
    }
    this.#beforeReset();
    this.#attached = true;
    this.#movedAt = performance.now();
    return new Promise((resolve) => {
      const listeners = new AbortController();
      /** @param {import("../media/playback-result.js").PlaybackResult} ending */
      const end = (ending) => {
        listeners.abort();
        this.#stuck = () => {};
        resolve(ending);
      };
      const failed = () => {
        const code = video.error?.code;
        const final = code === MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED || code === MediaError.MEDIA_ERR_DECODE;
        end({ kind: final ? "unplayable" : "lost", reason: video.error?.message, codecs: [] });
      };
      const options = { signal: listeners.signal };
      video.addEventListener("error", failed, options);
      video.addEventListener("ended", () => end({ kind: "finished" }), options);
      signal.addEventListener("abort", () => end({ kind: "stopped" }), options);
      this.#stuck = () => end({ kind: "lost", reason: "the video stopped moving" });
      video.src = this.#url;
      // Phones load nothing before play() is called.
      if (this.#intent.plays) video.play().catch(() => {});
    });
  }

  /**
   * Whether this browser would fail because the playlist is still too short.
   * @param {AbortSignal} signal
   */
  async #isTooShort(signal) {
    if (this.#video.getStartDate || this.#mediaURL === "") return false;
    const response = await fetch(this.#mediaURL, { cache: "no-store", signal });
    return response.ok && isTooShort(await response.text());
  }

  async drain() {}

  /** Releases the video element. */
  detach() {
    if (!this.#attached) return;
    this.#attached = false;
    this.#video.removeAttribute("src");
    this.#video.load();
  }
}

/** @param {string} playlist @returns {string[]} The CODECS attribute of a multivariant playlist's first variant. */
export function codecsOf(playlist) {
  const match = /^#EXT-X-STREAM-INF:.*?CODECS="([^"]*)"/m.exec(playlist);
  return match ? match[1].split(",").map((c) => c.trim()).filter(Boolean) : [];
}

/** @param {string} playlist A multivariant playlist. @returns {string | null} The URI of its first variant. */
function firstVariant(playlist) {
  const lines = playlist.split(/\r?\n/);
  const at = lines.findIndex((line) => line.startsWith("#EXT-X-STREAM-INF:"));
  return at < 0 ? null : lines.slice(at + 1).find((line) => line !== "" && !line.startsWith("#")) ?? null;
}

/**
 * @param {string} playlist A media playlist.
 * @returns {boolean} Whether a live playlist is shorter than three target durations, the distance to its end that
 *   RFC 8216 §6.3.3 demands. Chromium 156 fails on such a playlist (DEMUXER_ERROR_COULD_NOT_PARSE).
 */
export function isTooShort(playlist) {
  if (playlist.includes("#EXT-X-ENDLIST")) return false;
  const target = Number(/^#EXT-X-TARGETDURATION:(\d+)/m.exec(playlist)?.[1] ?? 0);
  const length = [...playlist.matchAll(/^#EXTINF:([0-9.]+)/gm)].reduce((sum, match) => sum + Number(match[1]), 0);
  return length < 3 * target;
}

/**
 * @param {string} playlist A media playlist.
 * @returns {number | null} When its last segment ends, in milliseconds since 1970.
 */
export function endDate(playlist) {
  let date = NaN, length = 0;
  for (const line of playlist.split(/\r?\n/)) {
    const [, name, value] = /^#(EXTINF|EXT-X-PROGRAM-DATE-TIME):(.*)$/.exec(line) ?? [];
    if (name === "EXT-X-PROGRAM-DATE-TIME") date = Date.parse(value);
    // The date stands before or after the duration of its segment, but always before its URI.
    else if (name === "EXTINF") length = parseFloat(value) * 1000;
    else if (line !== "" && !line.startsWith("#")) date += length;
  }
  return Number.isNaN(date) ? null : date;
}
