/** The live window: the segments and parts that the server offers now. Its playlists are read continuously. */

import { readInit, startSeconds } from "./boxes.js";
import { unplayable } from "./codecs.js";
import { fetchOnce, PARTS_FIRST } from "./early-requests.js";
import { anySignal, fetchBytes, pause, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMultivariant } from "./playlist.js";
import { Rendition } from "./rendition.js";
import { Throughput } from "./throughput.js";

/** Time limit of a request that is not a blocking reload. */
const TIMEOUT_MILLISECONDS = 8000;
/** Pause after a failed reload; doubled each time. */
const RETRY_MILLISECONDS = 500;
const LONGEST_RETRY_MILLISECONDS = 8000;
/** Minimum interval between readings of the multivariant playlist for added or removed renditions. */
const UPDATE_MILLISECONDS = 5000;
/** EXT-X-SESSION-DATA identifier for the seconds that can be rewound into the server's time-shift buffer. */
const REWIND_DATA = "weir.rewind";
/** The header of a fragment lies within this many bytes from the start of a segment. */
const HEAD_BYTES = 16 * 1024;

/** @typedef {{name: string, url: string, codecs: string[], bandwidth: number, size: {width: number, height: number} | null}} Quality */

/** @typedef {import("./playlist.js").AlternativeRendition} Audio */

export class LiveWindow extends EventTarget {
  /** @type {Rendition[]} The variant's own playlist first, then its separate audio. */
  renditions = [];
  /** @type {string[]} Codec strings of the variant. */
  codecs = [];
  /** @type {"parts" | "segments" | "polls"} What a reload waits for. "parts" for playback by parts at the edge. */
  pace = "segments";
  /** @type {Quality[]} The qualities that this browser plays, the publisher's first. */
  qualities = [];
  /** Name of the present quality; "" for the publisher's. */
  quality = "";
  /** @type {Audio[]} The audio renditions to choose from, each with a name of its own. */
  audios = [];
  /** Name of the audio that the viewer chose; "" for the stream's default. */
  preferredAudio = "";
  /** Whether `Adaptation` chooses the quality; false after the viewer has chosen. */
  isAutomatic = true;
  /** Throughput of the video. */
  throughput = new Throughput();
  /** Changes with each epoch of the server. Segments of another epoch have other numbers and times. */
  epoch = "";
  /** @type {HTTPFailure | null} Set while the server refuses the playlists because it is full. */
  refusal = null;
  #url;
  /** Whether the variant has video. */
  #hasVideo = false;
  /** Seconds that can be rewound into the server's time-shift buffer. */
  #rewind = 0;
  /** Whether the media playlists may begin with parts alone: the stream has no whole segment yet. */
  #beginsWithParts = false;
  /** How often the renditions were chosen anew within the present epoch of the server. */
  #restarts = 0;
  /** @type {Map<string, Promise<"ended" | "gone" | "superseded">>} The reading of the latest playlist of each kind. */
  #replacements = new Map();
  /** @type {AbortSignal | null} Aborts when the epoch ends. */
  #following = null;
  /** Number of calls of `choose`, and of `chooseAudio`. */
  #requests = 0;
  #audioRequests = 0;
  #ending = new AbortController();
  /** URLs of the playlists in the multivariant playlist, and when it was read: milliseconds as performance.now(). */
  #known = { /** @type {Set<string>} */ urls: new Set(), at: -Infinity };

  /** @param {string} url URL of the multivariant playlist. */
  constructor(url) {
    super();
    this.#url = url;
  }

  /** The rendition whose times are shown. */
  get main() { return this.renditions.at(0) ?? null; }
  /** Name of the separate audio that plays; "" without any. */
  get audio() {
    const url = this.renditions.find((r) => r.kind === "audio")?.url;
    return this.audios.find((a) => a.url === url)?.name ?? "";
  }
  /** Whether all playlists are anchored. Before that, their times cannot be compared. */
  get isReady() { return this.renditions.length > 0 && this.renditions.every((r) => r.isPlaced); }
  /** Whether the newest complete segment of the main rendition is a gap. */
  get isStalled() { return this.main?.timeline.segments.findLast((s) => s.complete)?.gap ?? false; }
  /** @param {number} time Seconds of media. @returns {number | null} Milliseconds since 1970. */
  dateAt(time) { return this.main?.timeline.isAnchored ? this.main.timeline.dateAt(time) : null; }

  /**
   * Reads the playlists until the stream ends or the signal aborts; never throws. It retries if the stream has no playlist
   * yet, or if the server is down or full.
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
        if (!signal.aborted) this.#reportRefusal(error);
        await pause(Math.max(RETRY_MILLISECONDS * (failures++ < 4 ? 1 : 4), retryDelay(error)), signal);
        continue;
      }
      this.#ending = new AbortController();
      const both = anySignal(signal, this.#ending.signal);
      this.#following = both;
      const followed = this.renditions.map((rendition) => this.#followAll(rendition, both));
      if ((await Promise.all(followed)).every((outcome) => outcome === "ended")) break;
      await pause(RETRY_MILLISECONDS, signal);
    }
  }

  /**
   * Changes to another quality. Its playlist replaces the present one, which has the same segment numbers and times.
   * Resolves when it is in place, or when another quality was requested meanwhile. Throws if the quality is not available;
   * then nothing changes.
   * @param {string} name Name of the quality; "" for the publisher's.
   */
  async choose(name) {
    const request = this.#requests += 1, following = this.#following;
    const quality = this.qualities.find((q) => q.name === name);
    if (quality === undefined || name === this.quality) return;
    const next = new Rendition("main", quality.url, 0);
    const signal = timeout(TIMEOUT_MILLISECONDS);
    await next.reload("now", signal);
    await anchor(next, signal);
    if (request !== this.#requests) return;
    const former = this.renditions.at(0);
    if (!next.timeline.isAnchored || former === undefined || following === null || following.aborted) {
      throw new Error(`quality ${name || "of the source"} has no media now`);
    }
    this.quality = name;
    this.codecs = quality.codecs;
    // A segment that was begun in the former quality is completed in it.
    former.lastSequence = former.timeline.segments.at(-1)?.sequence ?? 0;
    this.renditions = [next, ...this.renditions.slice(1)];
    this.#replacements.set("main", this.#follow(next, following));
    this.dispatchEvent(new Event("change"));
  }

  /**
   * Changes to another audio rendition, from the next segment on; otherwise as `choose`.
   * @param {string} name
   */
  async chooseAudio(name) {
    const request = this.#audioRequests += 1, following = this.#following;
    this.preferredAudio = name;
    const audio = this.audios.find((a) => a.name === name);
    const former = this.renditions.find((r) => r.kind === "audio");
    if (audio === undefined || former === undefined || former.url === audio.url) return;
    const next = new Rendition("audio", audio.url, this.#rewind);
    const signal = timeout(TIMEOUT_MILLISECONDS);
    await next.reload("now", signal);
    await anchor(next, signal);
    if (request !== this.#audioRequests) return;
    if (!next.timeline.isAnchored || following === null || following.aborted || !this.renditions.includes(former)) {
      throw new Error(`audio ${name} has no media now`);
    }
    // A segment that was begun is completed in the former audio.
    former.lastSequence = former.timeline.segments.at(-1)?.sequence ?? 0;
    next.isReported = former.isReported;
    this.renditions = this.renditions.map((r) => r === former ? next : r);
    this.#replacements.set("audio", this.#follow(next, following));
    this.dispatchEvent(new Event("change"));
  }

  /**
   * Resolves with the next change of a playlist.
   * @param {AbortSignal} signal @returns {Promise<void>}
   */
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
    const audio = this.#audioOf(variant, renditions);
    // The time-shift buffer contains only the publisher's own quality.
    this.#rewind = this.quality === "" ? Number(data.get(REWIND_DATA)) || 0 : 0;
    this.#hasVideo = variant.size !== null;
    this.codecs = variant.codecs;
    this.refusal = null;
    // Renditions may be added and removed within an epoch. All of them are in its folder.
    this.epoch = `${new URL("../", variant.url).href}#${this.#restarts}`;
    this.renditions = [new Rendition("main", variant.url, this.#rewind)];
    if (audio !== null) this.renditions.push(new Rendition("audio", audio, this.#rewind));
    for (const rendition of this.renditions) rendition.mayBeginWithParts = this.#beginsWithParts;
  }

  /**
   * @param {import("./playlist.js").Variant} variant
   * @param {import("./playlist.js").AlternativeRendition[]} renditions
   * @returns {string | null} The playlist of its separate audio.
   */
  #audioOf(variant, renditions) {
    const group = renditions.filter((r) => r.type === "AUDIO" && r.group === variant.audio && r.url !== "");
    const chosen = group.find((r) => r.name === this.preferredAudio);
    const url = (chosen ?? group.find((r) => r.isDefault) ?? group.at(0))?.url ?? null;
    return url === variant.url ? null : url;
  }

  /**
   * Stores a refusal if the error says that the server is full.
   * @param {unknown} error
   */
  #reportRefusal(error) {
    this.refusal = error instanceof HTTPFailure && error.isFull ? error : null;
    if (this.refusal !== null) this.dispatchEvent(new Event("change"));
  }

  /**
   * Reads which qualities there are.
   * @param {AbortSignal} signal
   */
  async #readMultivariant(signal) {
    this.#known.at = performance.now();
    const response = await fetchOnce(this.#url, anySignal(signal, timeout(TIMEOUT_MILLISECONDS)), true);
    if (!response.ok) throw await HTTPFailure.of(response);
    const { variants: all, renditions, data } = parseMultivariant(await response.text(), response.url);
    // The query is of the first request alone. A playlist is known by its address without it.
    this.#beginsWithParts = all.some(({ url }) => url.endsWith(PARTS_FIRST));
    for (const named of [...all, ...renditions]) named.url = withoutStart(named.url);
    this.#known.urls = new Set([...all, ...renditions].map(({ url }) => url));
    const variants = playable(all);
    this.audios = renditions.filter((r) => r.type === "AUDIO" && r.group === variants.at(0)?.audio && r.url !== "");
    this.qualities = variants.map((v) => ({
      name: v.url === all[0].url ? "" : new URL(v.url).pathname.split("/").at(-2) ?? "", url: v.url, codecs: v.codecs,
      bandwidth: v.bandwidth, size: v.size,
    }));
    return { variants, renditions, data };
  }

  /**
   * Finds renditions that were added after the multivariant playlist was read. The server lists them in rendition reports of
   * the present playlist. When tracks are added or removed, there is also a new init segment.
   * @param {Rendition} rendition The rendition whose playlist has just been read.
   * @param {AbortSignal} signal
   */
  async #updateRenditions(rendition, signal) {
    const { playlist, map } = rendition;
    const reports = playlist?.reports ?? [];
    if (rendition === this.main && playlist !== null) {
      for (const other of this.renditions.slice(1)) {
        if (reports.includes(other.url)) other.isReported = true;
        else if (other.isReported !== null) other.isReported = false;
      }
    }
    rendition.checkedMap ??= map;
    const { urls, at } = this.#known;
    const isNew = rendition.checkedMap !== map || [rendition.url, ...reports].some((url) => !urls.has(url));
    if (!isNew || performance.now() - at < UPDATE_MILLISECONDS) return;
    try {
      const { variants, renditions } = await this.#readMultivariant(signal);
      rendition.checkedMap = map;
      await this.#rearrange(variants, renditions, signal);
    } catch {
      // The known renditions are enough to continue.
    }
  }

  /**
   * Adds separate audio where there was none beside the video. Audio that ends stays in the list, because its earlier segments
   * can still be played. When the first video is added or the last one removed, the window is opened anew.
   * @param {import("./playlist.js").Variant[]} variants
   * @param {import("./playlist.js").AlternativeRendition[]} renditions
   * @param {AbortSignal} signal
   */
  async #rearrange(variants, renditions, signal) {
    const { main } = this, variant = variants.at(0);
    if (variant === undefined || main === null) return;
    if ((variant.size !== null) !== this.#hasVideo) {
      this.#hasVideo = variant.size !== null;
      // If all tracks are in one playlist, that playlist continues.
      if (variant.url === main.url) return;
      this.#restarts += 1;
      this.#ending.abort();
      return;
    }
    const audio = this.#audioOf(variant, renditions);
    if (audio === null || this.renditions.length > 1) return;
    const next = new Rendition("audio", audio, this.#rewind);
    try {
      await next.reload("now", signal);
      next.alignWith(main);
      if (!next.timeline.isAnchored) throw new Error("the times of the audio playlist are not known yet");
    } catch (error) {
      // The next report of it must count as new.
      this.#known.urls.delete(audio);
      throw error;
    }
    signal.throwIfAborted();
    next.isReported = true;
    this.renditions = [...this.renditions, next];
    this.#followAll(next, signal);
  }

  /**
   * Follows a playlist and its replacements. If one is gone, the epoch ends.
   * @param {Rendition} rendition
   * @param {AbortSignal} signal Aborts when the epoch ends.
   */
  async #followAll(rendition, signal) {
    const ending = this.#ending;
    let outcome = await this.#follow(rendition, signal);
    for (;;) {
      const next = this.#replacements.get(rendition.kind);
      if (outcome !== "superseded" || next === undefined) break;
      outcome = await next;
    }
    if (outcome === "gone") ending.abort();
    return outcome;
  }

  /**
   * Reads one playlist until it ends ("ended"), is gone because the server has begun a new epoch ("gone"), or another one has
   * replaced it ("superseded").
   * @param {Rendition} rendition
   * @param {AbortSignal} signal
   * @returns {Promise<"ended" | "gone" | "superseded">}
   */
  async #follow(rendition, signal) {
    let failures = 0;
    while (!signal.aborted) {
      try {
        const news = await rendition.reload(this.pace, signal);
        failures = 0;
        this.refusal = null;
        if (!rendition.timeline.isAnchored) await anchor(rendition, signal);
        await rendition.readHistory(signal);
        this.dispatchEvent(new Event("change"));
        const { playlist } = rendition;
        if (playlist === null || playlist.isEnded) return "ended";
        await this.#updateRenditions(rendition, signal);
        if (rendition.isSuperseded) return "superseded";
        // RFC 8216bis §6.3.4: wait a target duration after a change, half of it without one.
        if (!playlist.canBlockReload) await pause(playlist.targetDuration * (news ? 1000 : 500), signal);
        // Limits the requests to a server that responds to a blocking reload at once, without a change.
        else if (!news) await pause(RETRY_MILLISECONDS, signal);
      } catch (error) {
        if (error instanceof HTTPFailure && error.isGone) return "gone";
        if (!signal.aborted && rendition.playlist === null) this.#reportRefusal(error);
        failures += 1;
        const own = Math.min(LONGEST_RETRY_MILLISECONDS, RETRY_MILLISECONDS * 2 ** failures);
        await pause(Math.max(own, retryDelay(error)), signal);
      }
    }
    return "gone";
  }
}

/** @param {string} url @returns {string} The address of a playlist that does not say with what it begins. */
const withoutStart = (url) => url.endsWith(PARTS_FIRST) ? url.slice(0, -PARTS_FIRST.length) : url;

/** @param {unknown} error @returns {number} Milliseconds before the server wants the next request. */
const retryDelay = (error) => error instanceof HTTPFailure ? error.retryDelay : 0;

/**
 * The qualities that this browser plays, with one audio group: that of the first such quality. All qualities if it plays
 * none.
 * @param {import("./playlist.js").Variant[]} variants
 */
function playable(variants) {
  const good = variants.filter((v) => unplayable(v.codecs).length === 0);
  const [first, ...others] = good.length > 0 ? good : variants;
  if (first === undefined) return [];
  return first.size === null ? [first] : [first, ...others.filter((v) => v.audio === first.audio)];
}

/** Finds the media time at which the playlist begins, by reading the head of a segment. */
async function anchor(/** @type {Rendition} */ rendition, /** @type {AbortSignal} */ signal) {
  const segment = rendition.timeline.readable;
  if (segment === null || segment.map === null) return;
  const { url, range } = segment.complete ? segment : segment.parts[0];
  const head = { offset: range?.offset ?? 0, length: Math.min(range?.length ?? Infinity, HEAD_BYTES) };
  const [init, bytes] = await Promise.all([fetchBytes(segment.map, signal), fetchBytes({ url, range: head }, signal)]);
  // Media without a readable time is placed where the playlist puts it.
  rendition.timeline.anchor(segment.sequence, startSeconds(bytes, readInit(init)) ?? segment.start);
}
