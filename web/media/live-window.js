/** The live window: which segments and parts the server offers at this moment, kept fresh by reading its playlists. */

import { readInit, startSeconds } from "./boxes.js";
import { unplayable } from "./codecs.js";
import { fetchOnce } from "./early-requests.js";
import { anySignal, fetchBytes, pause, timeout } from "./fetching.js";
import { HTTPFailure } from "./playback-result.js";
import { parseMultivariant } from "./playlist.js";
import { Rendition } from "./rendition.js";
import { Throughput } from "./throughput.js";

/** A request that is not held open takes no longer than this. */
const TIMEOUT_MILLISECONDS = 8000;
/** A failed reload is tried again after so long, doubled each time. */
const RETRY_MILLISECONDS = 500;
const LONGEST_RETRY_MILLISECONDS = 8000;
/** Pictures that come and go are learned of no more often than this. */
const UPDATE_MILLISECONDS = 5000;
/** What a multivariant playlist calls the seconds that can be gone back on the server's disk. */
const REWIND_DATA = "weir.rewind";
/** A fragment's header lies within these first bytes of a segment. */
const HEAD_BYTES = 16 * 1024;

/** @typedef {{name: string, url: string, codecs: string[], bandwidth: number, size: {width: number, height: number} | null}} Quality */

export class LiveWindow extends EventTarget {
  /** @type {Rendition[]} The variant's own playlist first, then its separate sound. */
  renditions = [];
  /** @type {string[]} Codec strings of the variant. */
  codecs = [];
  /** @type {"parts" | "segments"} What each reload waits for: whoever plays at the edge by parts wants all of them. */
  pace = "segments";
  /** @type {Quality[]} The pictures that this browser plays, the publisher's first. */
  qualities = [];
  /** The name of the one that is read; "" for the publisher's. */
  quality = "";
  /** Whether it follows what the connection carries (`Adaptation`); else the viewer has chosen it. */
  isAutomatic = true;
  /** How fast the picture's media come. */
  throughput = new Throughput();
  /** What changes when the server begins anew: segments of another epoch have other numbers and times. */
  epoch = "";
  /** @type {HTTPFailure | null} Why no playlists are to be had, where the server has no room. */
  refusal = null;
  #url;
  /** Whether the variant has a picture. */
  #hasVideo = false;
  /** Seconds that can be gone back on the server's disk. */
  #rewind = 0;
  /** How often the renditions were chosen anew within the server's epoch. */
  #restarts = 0;
  /** @type {Promise<"ended" | "gone" | "superseded"> | null} The reading of the latest main playlist. */
  #replacement = null;
  /** @type {AbortSignal | null} Ends with the epoch. */
  #following = null;
  /** How often a picture was asked for. */
  #requests = 0;
  #ending = new AbortController();
  /** The playlists that the multivariant playlist named, and when it did: performance.now() milliseconds. */
  #known = { /** @type {Set<string>} */ urls: new Set(), at: -Infinity };

  /** @param {string} url Of the multivariant playlist. */
  constructor(url) {
    super();
    this.#url = url;
  }

  /** The rendition whose times are shown. */
  get main() { return this.renditions.at(0) ?? null; }
  /** Whether it is known where to find which media: before, the playlists' times mean nothing to each other. */
  get isReady() { return this.renditions.length > 0 && this.renditions.every((r) => r.isPlaced); }
  /** Whether nothing comes of the picture at present. */
  get isStalled() { return this.main?.timeline.segments.findLast((s) => s.complete)?.gap ?? false; }
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
   * Takes another picture: its playlist comes in place of the present one, whose segments have the same numbers and times.
   * Resolves when it is there, or another one has been asked for meanwhile; throws when it cannot be had, and everything
   * stays as it is.
   * @param {string} name Of a quality; "" for the publisher's.
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
    // What has been begun of the former one is played to its segment's end.
    former.lastSequence = former.timeline.segments.at(-1)?.sequence ?? 0;
    this.renditions = [next, ...this.renditions.slice(1)];
    this.#replacement = this.#follow(next, following);
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
    const audio = audioOf(variant, renditions);
    // On disk there is the publisher's picture alone.
    this.#rewind = this.quality === "" ? Number(data.get(REWIND_DATA)) || 0 : 0;
    this.#hasVideo = variant.size !== null;
    this.codecs = variant.codecs;
    this.refusal = null;
    // Pictures may come and go in an epoch; all of them are in its folder.
    this.epoch = `${new URL("../", variant.url).href}#${this.#restarts}`;
    this.renditions = [new Rendition("main", variant.url, this.#rewind)];
    if (audio !== null) this.renditions.push(new Rendition("audio", audio, this.#rewind));
  }

  /**
   * Says that there is no room, where that is so.
   * @param {unknown} error
   */
  #reportRefusal(error) {
    this.refusal = error instanceof HTTPFailure && error.isFull ? error : null;
    if (this.refusal !== null) this.dispatchEvent(new Event("change"));
  }

  /**
   * Learns which pictures there are.
   * @param {AbortSignal} signal
   */
  async #readMultivariant(signal) {
    this.#known.at = performance.now();
    const response = await fetchOnce(this.#url, anySignal(signal, timeout(TIMEOUT_MILLISECONDS)));
    if (!response.ok) throw await HTTPFailure.of(response);
    const { variants: all, renditions, data } = parseMultivariant(await response.text(), response.url);
    this.#known.urls = new Set([...all, ...renditions].map(({ url }) => url));
    const variants = playable(all);
    this.qualities = variants.map((v) => ({
      name: v.url === all[0].url ? "" : new URL(v.url).pathname.split("/").at(-2) ?? "", url: v.url, codecs: v.codecs,
      bandwidth: v.bandwidth, size: v.size,
    }));
    return { variants, renditions, data };
  }

  /**
   * Pictures and sound that came, or came back, after the multivariant playlist was read: the server reports them beside
   * the present one, and where tracks come or go there is a new init segment.
   * @param {Rendition} rendition Whose playlist has just been read.
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
      // What is known is enough to go on.
    }
  }

  /**
   * Takes separate sound that there was none of before beside the picture. Sound that goes stays in the list: of its
   * earlier segments something can still be heard. With a first picture, or without the last one, all begins anew.
   * @param {import("./playlist.js").Variant[]} variants
   * @param {import("./playlist.js").AlternativeRendition[]} renditions
   * @param {AbortSignal} signal
   */
  async #rearrange(variants, renditions, signal) {
    const { main } = this, variant = variants.at(0);
    if (variant === undefined || main === null) return;
    if ((variant.size !== null) !== this.#hasVideo) {
      this.#hasVideo = variant.size !== null;
      // Where everything is in one playlist, that one goes on.
      if (variant.url === main.url) return;
      this.#restarts += 1;
      this.#ending.abort();
      return;
    }
    const audio = audioOf(variant, renditions);
    if (audio === null || this.renditions.length > 1) return;
    const next = new Rendition("audio", audio, this.#rewind);
    try {
      await next.reload("now", signal);
      next.alignWith(main);
      if (!next.timeline.isAnchored) throw new Error("the times of the audio playlist are not known yet");
    } catch (error) {
      // The next report of it is news again.
      this.#known.urls.delete(audio);
      throw error;
    }
    signal.throwIfAborted();
    next.isReported = true;
    this.renditions = [...this.renditions, next];
    this.#followAll(next, signal);
  }

  /**
   * Reads a playlist, and those that take its place, and ends the epoch where one is no more there.
   * @param {Rendition} rendition
   * @param {AbortSignal} signal Ends with the epoch.
   */
  async #followAll(rendition, signal) {
    const ending = this.#ending;
    let outcome = await this.#follow(rendition, signal);
    while (outcome === "superseded" && this.#replacement !== null) outcome = await this.#replacement;
    if (outcome === "gone") ending.abort();
    return outcome;
  }

  /**
   * Reads one playlist until it ends, is no more there because the server has begun a new epoch, or another one has taken
   * its place.
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
        // RFC 8216bis §6.3.4: a target duration after news, half of it after none.
        if (!playlist.canBlockReload) await pause(playlist.targetDuration * (news ? 1000 : 500), signal);
        // A server that answers a held request at once with nothing new is not asked a thousand times a second.
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

/** @param {unknown} error @returns {number} Milliseconds for which the server does not want to be asked again. */
const retryDelay = (error) => error instanceof HTTPFailure ? error.retryDelay : 0;

/**
 * The pictures that this browser plays, with one of the sounds that there are: the first that it plays. All of them where
 * it plays none.
 * @param {import("./playlist.js").Variant[]} variants
 */
function playable(variants) {
  const good = variants.filter((v) => unplayable(v.codecs).length === 0);
  const [first, ...others] = good.length > 0 ? good : variants;
  if (first === undefined) return [];
  return first.size === null ? [first] : [first, ...others.filter((v) => v.audio === first.audio)];
}

/**
 * @param {import("./playlist.js").Variant} variant
 * @param {import("./playlist.js").AlternativeRendition[]} renditions
 * @returns {string | null} The playlist of its separate sound.
 */
function audioOf(variant, renditions) {
  const group = renditions.filter((r) => r.type === "AUDIO" && r.group === variant.audio && r.url !== "");
  const url = (group.find((r) => r.isDefault) ?? group.at(0))?.url ?? null;
  return url === variant.url ? null : url;
}

/** Finds out where the playlist lies on the media's own time axis, from the head of a segment. */
async function anchor(/** @type {Rendition} */ rendition, /** @type {AbortSignal} */ signal) {
  const segment = rendition.timeline.readable;
  if (segment === null || segment.map === null) return;
  const { url, range } = segment.complete ? segment : segment.parts[0];
  const head = { offset: range?.offset ?? 0, length: Math.min(range?.length ?? Infinity, HEAD_BYTES) };
  const [init, bytes] = await Promise.all([fetchBytes(segment.map, signal), fetchBytes({ url, range: head }, signal)]);
  // Media that do not tell are taken to lie where the playlist puts them.
  rendition.timeline.anchor(segment.sequence, startSeconds(bytes, readInit(init)) ?? segment.start);
}
