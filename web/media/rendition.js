/** One media playlist of the live window, kept fresh by reading it anew. */

import { anySignal, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMedia } from "./playlist.js";
import { Timeline } from "./timeline.js";

/** A request that is not held open takes no longer than this. */
const TIMEOUT_MILLISECONDS = 8000;

/** One media playlist and its place in time. */
export class Rendition {
  /** @type {import("./playlist.js").MediaPlaylist | null} */
  playlist = null;
  timeline = new Timeline();
  /** Of the last segment before another rendition takes over; Infinity as long as none does. */
  lastSequence = Infinity;
  /** @type {boolean | null} Whether the picture's playlist reports it (§4.4.5.4); null as long as it never did. */
  isReported = null;
  /** @type {string | null} The init segment of the newest media when the multivariant playlist was read; null before any. */
  checkedMap = null;
  /** Whether segments from before the list, if the server has any, still have to be asked for. */
  #lacksHistory;
  /** Where the newest media was when, for an edge that moves between two reloads: performance.now() milliseconds. */
  #grownAt = 0;
  #readAt = -Infinity;

  /**
   * @param {"main" | "audio"} kind
   * @param {string} url
   * @param {number} rewind Seconds that can be gone back beyond what the playlist lists.
   */
  constructor(kind, url, rewind) {
    this.kind = kind;
    this.url = url;
    this.timeline.memory = rewind;
    this.#lacksHistory = rewind > 0;
  }

  /** Whether its segments lie where their media do, or none of them has any. */
  get isPlaced() {
    const { segments, isAnchored, readable } = this.timeline;
    return segments.length > 0 && (isAnchored || readable === null);
  }

  /** The URL of the newest media's init segment; "" without any. */
  get map() { return this.playlist?.segments.at(-1)?.map?.url ?? ""; }

  /** Whether everything is here that is needed of it. */
  get isSuperseded() {
    const newest = this.timeline.segments.findLast((s) => s.complete);
    return newest !== undefined && newest.sequence >= this.lastSequence;
  }

  /**
   * Lays it beside one whose segments have the same numbers and times.
   * @param {Rendition} other
   */
  alignWith(other) {
    if (!other.timeline.isAnchored) return;
    for (const { sequence } of this.timeline.segments) {
      const known = other.timeline.numbered(sequence);
      if (known !== null) return this.timeline.anchor(sequence, known.start);
    }
  }

  /**
   * Learns once of what was there before the list begins.
   * @param {AbortSignal} signal
   */
  async readHistory(signal) {
    if (!this.#lacksHistory) return;
    this.#lacksHistory = false;
    const url = new URL("dvr.m3u8", this.url).href;
    try {
      const response = await fetch(url, { signal: anySignal(signal, timeout(TIMEOUT_MILLISECONDS)) });
      if (response.ok) this.timeline.prepend(parseMedia(await response.text(), url).segments);
    } catch {
      // The window alone can be gone back in.
    }
  }

  /** Seconds at which the newest media ends by now: the last playlist's end, moved on with the clock until the next. */
  get liveEnd() {
    const end = this.timeline.end;
    if (end === null || this.playlist === null) return null;
    if (this.playlist.isEnded) return end;
    return end + Math.min((performance.now() - this.#grownAt) / 1000, this.playlist.targetDuration);
  }

  /**
   * Reads the playlist anew. Where the server offers it, the answer comes as soon as there is something new.
   * @param {"parts" | "segments" | "now"} wait What must be new in the answer.
   * @param {AbortSignal} signal
   */
  async reload(wait, signal) {
    const former = this.playlist;
    const limit = (former?.targetDuration ?? 0) * 3000 + TIMEOUT_MILLISECONDS;
    const response = await fetch(this.#request(wait), {
      cache: "no-store", signal: anySignal(signal, timeout(limit)),
    });
    if (!response.ok) throw await HTTPFailure.of(response);
    const text = await response.text();
    try {
      this.playlist = parseMedia(text, this.url, former);
    } catch (error) {
      // The next request asks for the whole playlist.
      this.#readAt = -Infinity;
      throw error;
    }
    const before = this.timeline.end;
    this.#readAt = performance.now();
    this.timeline.update(this.playlist.segments);
    if (this.timeline.end !== before) this.#grownAt = this.#readAt;
    return this.timeline.end !== before || this.playlist.isEnded;
  }

  /** @param {"parts" | "segments" | "now"} wait */
  #request(wait) {
    const { playlist } = this;
    if (playlist === null) return this.url;
    const url = new URL(this.url);
    const last = playlist.segments.at(-1);
    if (wait !== "now" && playlist.canBlockReload && last !== undefined && !playlist.isEnded) {
      const next = last.complete ? last.sequence + 1 : last.sequence;
      url.searchParams.set("_HLS_msn", String(next));
      if (wait === "parts" && playlist.partTarget > 0) {
        url.searchParams.set("_HLS_part", String(last.complete ? 0 : last.parts.length));
      }
    }
    const age = (performance.now() - this.#readAt) / 1000;
    if (playlist.canSkipUntil > 0 && age < playlist.canSkipUntil / 2) url.searchParams.set("_HLS_skip", "YES");
    return url.href;
  }
}
