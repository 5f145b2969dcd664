/** The live window: which segments and parts the server offers at this moment, kept fresh by reading its playlists. */

import { parseMedia, parseMultivariant } from "./playlist.js";
import { readInit, startSeconds } from "./boxes.js";
import { unplayable } from "./codecs.js";
import { HTTPFailure } from "./ending.js";
import { Throughput } from "./throughput.js";
import { Timeline } from "./timeline.js";

/** A request that is not held open takes no longer than this. */
const PATIENCE_MILLISECONDS = 8000;
/** A failed reload is tried again after so long, doubled each time. */
const RETRY_MILLISECONDS = 500;
const LONGEST_RETRY_MILLISECONDS = 8000;
/** Pictures that come and go are learned of no more often than this. */
const LEARN_MILLISECONDS = 5000;
/** What a multivariant playlist calls the seconds that can be gone back on the server's disk. */
const REWIND_DATA = "weir.rewind";
/** A fragment's header lies within these first bytes of a segment. */
const HEAD_BYTES = 16 * 1024;

/** One media playlist and its place in time. */
export class Rendition {
  /** @type {import("./playlist.js").MediaPlaylist | null} */
  playlist = null;
  timeline = new Timeline();
  /** Of the segment with which another rendition takes over; Infinity as long as none does. */
  lastSequence = Infinity;
  /** Whether the programme's earlier segments, if there are any to be had, still have to be asked for. */
  #lacksProgramme;
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
    this.#lacksProgramme = rewind > 0;
  }

  /** Whether everything is here that is needed of it. */
  get isLeft() {
    const newest = this.timeline.segments.findLast((s) => s.complete);
    return newest !== undefined && newest.sequence >= this.lastSequence;
  }

  /** Learns once of what was there before the list begins. @param {AbortSignal} signal */
  async readProgramme(signal) {
    if (!this.#lacksProgramme) return;
    this.#lacksProgramme = false;
    const url = new URL("dvr.m3u8", this.url).href;
    try {
      const response = await fetch(url, { signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MILLISECONDS)]) });
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
    const limit = (former?.targetDuration ?? 0) * 3000 + PATIENCE_MILLISECONDS;
    const response = await fetch(this.#request(wait), {
      cache: "no-store", signal: AbortSignal.any([signal, AbortSignal.timeout(limit)]),
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

/** @typedef {{name: string, url: string, codecs: string[], bandwidth: number, size: {width: number, height: number} | null}} Quality */

export class LiveWindow extends EventTarget {
  /** @type {Rendition[]} The variant's own playlist first, then its separate sound. */
  renditions = [];
  /** @type {string[]} Codec strings of the variant. */
  codecs = [];
  /** What each reload waits for: whoever plays at the edge by parts wants all of them. @type {"parts" | "segments"} */
  pace = "segments";
  /** The pictures that there are, the publisher's first. @type {Quality[]} */
  qualities = [];
  /** The name of the chosen one; "" for the publisher's. */
  quality = "";
  /** How fast the picture's media come. */
  throughput = new Throughput();
  /** What changes when the server begins anew: segments of another epoch have other numbers and times. */
  epoch = "";
  /** Why no playlists are to be had, where the server has no room. @type {HTTPFailure | null} */
  refusal = null;
  #url;
  /** The reading of the latest main playlist. @type {Promise<"ended" | "gone" | "left"> | null} */
  #joined = null;
  /** Ends with the epoch. @type {AbortSignal | null} */
  #following = null;
  /** The playlists that the multivariant playlist named, and when it did: performance.now() milliseconds. */
  #known = { /** @type {Set<string>} */ urls: new Set(), at: -Infinity };

  /** @param {string} url Of the multivariant playlist. */
  constructor(url) {
    super();
    this.#url = url;
  }

  /** The rendition whose times are shown. */
  get main() { return this.renditions.at(0) ?? null; }
  get isReady() { return this.renditions.length > 0 && this.renditions.every((r) => r.timeline.segments.length > 0); }
  /** Whether nothing comes of the picture at present. */
  get isSilent() { return this.main?.timeline.segments.findLast((s) => s.complete)?.gap ?? false; }
  /** @param {number} time Seconds of media. @returns {number | null} Milliseconds since 1970. */
  dateAt(time) { return this.main?.timeline.isAnchored ? this.main.timeline.dateAt(time) : null; }

  /**
   * Reads the playlists until the stream ends or the signal aborts; never throws. A stream that has no playlist yet, or
   * a server that is away or full, is asked again.
   * @param {AbortSignal} signal
   */
  async run(signal) {
    this.renditions = [];
    this.refusal = null;
    let failures = 0;
    while (!signal.aborted) {
      try {
        await this.#open(signal);
        failures = 0;
      } catch (error) {
        if (!signal.aborted) this.#tell(error);
        await pause(Math.max(RETRY_MILLISECONDS * (failures++ < 4 ? 1 : 4), wanted(error)), signal);
        continue;
      }
      const epoch = new AbortController();
      const both = AbortSignal.any([signal, epoch.signal]);
      this.#following = both;
      const followed = this.renditions.map(async (rendition) => {
        let way = await this.#follow(rendition, both);
        while (way === "left" && this.#joined !== null) way = await this.#joined;
        if (way === "gone") epoch.abort();
        return way;
      });
      if ((await Promise.all(followed)).every((way) => way === "ended")) break;
      await pause(RETRY_MILLISECONDS, signal);
    }
  }

  /**
   * Takes another picture: its playlist comes in place of the present one, whose segments have the same numbers and times.
   * Resolves when it is there; throws when it cannot be had, and everything stays as it is.
   * @param {string} name Of a quality; "" for the publisher's.
   */
  async choose(name) {
    const quality = this.qualities.find((q) => q.name === name);
    if (quality === undefined || name === this.quality) return;
    const next = new Rendition("main", quality.url, 0);
    const signal = AbortSignal.timeout(PATIENCE_MILLISECONDS);
    await next.reload("now", signal);
    await anchor(next, signal);
    const former = this.renditions.at(0);
    if (!next.timeline.isAnchored || former === undefined || this.#following === null) throw new Error(`no ${name} is there`);
    this.quality = name;
    this.codecs = quality.codecs;
    // What has been begun of the former one is played to its segment's end.
    former.lastSequence = former.timeline.segments.at(-1)?.sequence ?? 0;
    this.renditions = [next, ...this.renditions.slice(1)];
    this.#joined = this.#follow(next, this.#following);
    this.dispatchEvent(new Event("change"));
  }

  /** Resolves with the next change of a playlist. @param {AbortSignal} signal @returns {Promise<void>} */
  changed(signal) {
    return new Promise((resume) => {
      const done = () => {
        this.removeEventListener("change", done);
        signal.removeEventListener("abort", done);
        resume();
      };
      if (signal.aborted) return resume();
      this.addEventListener("change", done);
      signal.addEventListener("abort", done);
    });
  }

  /** @param {AbortSignal} signal */
  async #open(signal) {
    const { variants, renditions, data } = await this.#readMultivariant(signal);
    signal.throwIfAborted();
    const index = Math.max(0, this.qualities.findIndex((q) => q.name === this.quality));
    const variant = variants.at(index);
    if (variant === undefined) throw new Error("the multivariant playlist names no variant");
    this.quality = this.qualities[index].name;
    const group = renditions.filter((r) => r.type === "AUDIO" && r.group === variant.audio && r.url !== "");
    const sound = group.find((r) => r.isDefault) ?? group.at(0);
    // On disk there is the publisher's picture alone.
    const rewind = index === 0 ? Number(data.get(REWIND_DATA)) || 0 : 0;
    this.codecs = variant.codecs;
    this.refusal = null;
    // Pictures may come and go in an epoch; all of them are in its folder.
    this.epoch = new URL("../", variant.url).href;
    this.renditions = [new Rendition("main", variant.url, rewind)];
    if (sound !== undefined && sound.url !== variant.url) {
      this.renditions.push(new Rendition("audio", sound.url, rewind));
    }
  }

  /** Says that there is no room, where that is so. @param {unknown} error */
  #tell(error) {
    this.refusal = error instanceof HTTPFailure && error.isFull ? error : null;
    if (this.refusal !== null) this.dispatchEvent(new Event("change"));
  }

  /** Learns which pictures there are. @param {AbortSignal} signal */
  async #readMultivariant(signal) {
    this.#known.at = performance.now();
    const response = await fetch(this.#url, {
      cache: "no-store", signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MILLISECONDS)]),
    });
    if (!response.ok) throw await HTTPFailure.of(response);
    const { variants: all, renditions, data } = parseMultivariant(await response.text(), response.url);
    this.#known.urls = new Set([...all, ...renditions].map(({ url }) => url));
    const variants = playable(all);
    this.qualities = variants.map((v, index) => ({
      name: index === 0 ? "" : new URL(v.url).pathname.split("/").at(-2) ?? "", url: v.url, codecs: v.codecs,
      bandwidth: v.bandwidth, size: v.size,
    }));
    return { variants, renditions, data };
  }

  /**
   * Pictures that came, or came back, after the multivariant playlist was read: the server reports them beside the present
   * one.
   * @param {string[]} reports What there is.
   * @param {AbortSignal} signal
   */
  async #learn(reports, signal) {
    const { urls, at } = this.#known;
    if (performance.now() - at < LEARN_MILLISECONDS || reports.every((url) => urls.has(url))) return;
    try {
      await this.#readMultivariant(signal);
    } catch {
      // The pictures that are known are enough to go on.
    }
  }

  /**
   * Reads one playlist until it ends, is no more there because the server has begun a new epoch, or another one has taken
   * its place.
   * @param {Rendition} rendition
   * @param {AbortSignal} signal
   * @returns {Promise<"ended" | "gone" | "left">}
   */
  async #follow(rendition, signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const news = await rendition.reload(this.pace, signal);
        failures = 0;
        this.refusal = null;
        if (!rendition.timeline.isAnchored) await anchor(rendition, signal);
        await rendition.readProgramme(signal);
        this.dispatchEvent(new Event("change"));
        const { playlist } = rendition;
        if (playlist === null || playlist.isEnded) return "ended";
        await this.#learn([rendition.url, ...playlist.reports], signal);
        if (rendition.isLeft) return "left";
        // RFC 8216bis §6.3.4: a target duration after news, half of it after none.
        if (!playlist.canBlockReload) await pause(playlist.targetDuration * (news ? 1000 : 500), signal);
        // A server that answers a held request at once with nothing new is not asked a thousand times a second.
        else if (!news) await pause(RETRY_MILLISECONDS, signal);
      } catch (error) {
        if (error instanceof HTTPFailure && error.isGone) return "gone";
        if (!signal.aborted && rendition.playlist === null) this.#tell(error);
        failures += 1;
        const own = Math.min(LONGEST_RETRY_MILLISECONDS, RETRY_MILLISECONDS * 2 ** failures);
        await pause(Math.max(own, wanted(error)), signal);
      }
    }
    return "gone";
  }
}

/** @param {unknown} error @returns {number} Milliseconds for which a full server does not want to be asked again. */
const wanted = (error) => error instanceof HTTPFailure && error.isFull ? error.retryAfter * 1000 : 0;

/**
 * The pictures with one of the sounds that there are: the first that this browser plays.
 * @param {import("./playlist.js").Variant[]} variants
 */
function playable(variants) {
  const first = variants.find((v) => unplayable(v.codecs, "mse").length === 0) ?? variants.at(0);
  if (first === undefined) return [];
  return first.size === null ? [first] : variants.filter((v) => v.audio === first.audio);
}

/** Finds out where the playlist lies on the media's own time axis, from the head of its newest segment. */
async function anchor(/** @type {Rendition} */ rendition, /** @type {AbortSignal} */ signal) {
  const segment = rendition.timeline.segments.findLast((s) => s.complete && !s.gap && s.map !== null);
  if (segment === undefined || segment.map === null) return;
  const init = readInit(await fetchBytes(segment.map, signal));
  const offset = segment.range?.offset ?? 0;
  const head = await fetchBytes({ url: segment.url, range: { offset, length: HEAD_BYTES } }, signal);
  const start = startSeconds(head, init);
  if (start !== null) rendition.timeline.anchor(segment.sequence, start);
}

/**
 * @param {import("./playlist.js").Resource} resource
 * @param {AbortSignal} signal
 * @param {import("./throughput.js").Throughput | null} [throughput] What takes note of how fast it comes.
 * @returns {Promise<Uint8Array>}
 */
export async function fetchBytes({ url, range }, signal, throughput = null) {
  const headers = range === null ? {} : { Range: `bytes=${range.offset}-${range.offset + range.length - 1}` };
  const response = await fetch(url, { headers, signal });
  if (!response.ok) throw await HTTPFailure.of(response);
  if (throughput === null || response.body === null) return new Uint8Array(await response.arrayBuffer());
  return measured(response.body, throughput);
}

/** @param {ReadableStream<Uint8Array>} body @param {import("./throughput.js").Throughput} throughput */
async function measured(body, throughput) {
  const reader = body.getReader();
  const pieces = [];
  let length = 0, before = performance.now();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const now = performance.now();
    throughput.add(value.length, now - before, now);
    before = now;
    pieces.push(value);
    length += value.length;
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** @param {number} milliseconds @param {AbortSignal} signal @returns {Promise<void>} */
export function pause(milliseconds, signal) {
  return new Promise((resume) => {
    if (signal.aborted) return resume();
    const done = () => { clearTimeout(timer); signal.removeEventListener("abort", done); resume(); };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener("abort", done);
  });
}
