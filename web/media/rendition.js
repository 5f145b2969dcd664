/** One media playlist of the live window, which is reloaded continuously. */

import { PARTS_FIRST } from "./early-requests.js";
import { anySignal, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMedia } from "./playlist.js";
import { Timeline } from "./timeline.js";

/** Time limit of a request, added to that of a blocking reload. */
const TIMEOUT_MILLISECONDS = 8000;

/** One media playlist and its position on the time axis. */
export class Rendition {
  /** @type {import("./playlist.js").MediaPlaylist | null} */
  playlist = null;
  timeline = new Timeline();
  /** Number of the last segment before another rendition replaces this one; Infinity while there is none. */
  lastSequence = Infinity;
  /** @type {boolean | null} Whether the main playlist reports this one (§4.4.5.4); null if it never did. */
  isReported = null;
  /** Whether the first playlist may have parts alone. */
  mayBeginWithParts = false;
  /** @type {string | null} URL of the newest init segment when the renditions were last checked; null before that. */
  checkedMap = null;
  /** Whether the segments before the list must still be requested. */
  #lacksHistory;
  /** When the media last grew, to advance the edge between two reloads: milliseconds as performance.now(). */
  #grownAt = 0;
  #readAt = -Infinity;

  /**
   * @param {"main" | "audio"} kind
   * @param {string} url
   * @param {number} rewind Seconds that can be rewound beyond the list of the playlist.
   */
  constructor(kind, url, rewind) {
    this.kind = kind;
    this.url = url;
    this.timeline.memory = rewind;
    this.#lacksHistory = rewind > 0;
  }

  /** Whether its segments lie at their media times, or none of them can be read. */
  get isPlaced() {
    const { segments, isAnchored, readable } = this.timeline;
    return segments.length > 0 && (isAnchored || readable === null);
  }

  /**
   * Whether it has media in a segment. One that is not listed yet is expected to if the newest one has. One that is not listed any
   * more had them, but not one before that: there the rendition began later.
   * @param {number} sequence
   */
  hasMedia(sequence) {
    const { segments } = this.timeline;
    const own = this.timeline.numbered(sequence), oldest = segments.at(0), newest = segments.at(-1);
    if (own !== null) return !own.gap;
    if (oldest === undefined || newest === undefined || sequence < oldest.sequence - 1) return false;
    return this.isReported !== false && !newest.gap;
  }

  /** URL of the init segment of the newest media; "" without any. */
  get map() { return this.playlist?.segments.at(-1)?.map?.url ?? ""; }

  /** Whether another rendition has replaced this one and all needed segments of this one are listed. */
  get isSuperseded() {
    const newest = this.timeline.segments.findLast((s) => s.complete);
    return newest !== undefined && newest.sequence >= this.lastSequence;
  }

  /**
   * Takes the times of another rendition, whose segments have the same numbers and times.
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
   * Reads once which segments the time-shift buffer has before the beginning of the list.
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
      // Without it, only the window can be rewound.
    }
  }

  /** Estimated end of the media in seconds: the end of the last playlist, advanced by the clock until the next one. */
  get liveEnd() {
    const end = this.timeline.end;
    if (end === null || this.playlist === null) return null;
    if (this.playlist.isEnded) return end;
    return end + Math.min((performance.now() - this.#grownAt) / 1000, this.playlist.targetDuration);
  }

  /**
   * Reloads the playlist. If the server supports blocking reload, it responds as soon as there is something new.
   * @param {"parts" | "segments" | "polls" | "now"} wait What must be new in the response; "polls": nothing, and only whole segments are
   *   taken from it, so that no request is held.
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
      const playlist = parseMedia(text, this.url, former);
      this.playlist = wait === "polls" ? wholeSegments(playlist) : playlist;
    } catch (error) {
      // The next request must ask for the whole playlist.
      this.#readAt = -Infinity;
      throw error;
    }
    const before = this.timeline.end;
    this.#readAt = performance.now();
    this.timeline.update(this.playlist.segments);
    if (this.timeline.end !== before) this.#grownAt = this.#readAt;
    return this.timeline.end !== before || this.playlist.isEnded;
  }

  /** @param {"parts" | "segments" | "polls" | "now"} wait */
  #request(wait) {
    const { playlist } = this;
    // Later requests name what they wait for, and have the address that all players have.
    if (playlist === null) return wait === "parts" && this.mayBeginWithParts ? this.url + PARTS_FIRST : this.url;
    const url = new URL(this.url);
    const last = playlist.segments.at(-1);
    if (wait !== "polls" && wait !== "now" && playlist.canBlockReload && last !== undefined && !playlist.isEnded) {
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

/**
 * @param {import("./playlist.js").MediaPlaylist} playlist
 * @returns {import("./playlist.js").MediaPlaylist} The same as of a server without parts.
 */
const wholeSegments = (playlist) => ({
  ...playlist, canBlockReload: false, hint: null,
  segments: playlist.segments.filter((segment) => segment.complete).map((segment) => ({ ...segment, parts: [] })),
});
