/**
 * Feeds the buffers from the live window: segment after segment from any place in it, and at its edge part after part,
 * each as soon as it is made.
 */

import { readInit, startSeconds } from "../media/boxes.js";
import { anySignal, fetchBytes, pause, timeout } from "../media/fetching.js";
import { failure, HTTPFailure } from "../media/playback-result.js";

/** Seconds of media ahead of the playhead that are enough. */
const AHEAD = 20;
/** How often a download that waits for room looks again. */
const ROOM_MILLISECONDS = 500;
/** How often one resource is tried before the connection is taken for lost. */
const TRIES = 4;
const RETRY_MILLISECONDS = 300;
/** A resource takes no longer than this. */
const TIMEOUT_MILLISECONDS = 20_000;
/** Times that the media and the playlist tell as different as this mean another time axis after a discontinuity. */
const SAME_AXIS = 0.5;

/** @typedef {import("../media/rendition.js").Rendition} Rendition */
/** @typedef {import("../media/timeline.js").PlacedSegment} PlacedSegment */
/** @typedef {{sequence: number, part: number}} Cursor What is to be fetched next. */

/** Thrown where the tracks change so that the element must begin anew. */
class NewTracks extends Error {
  /** @param {number} time Seconds at which they begin. */
  constructor(time) {
    super("the tracks have changed");
    this.time = time;
  }
}

/** Thrown where the window shows another epoch than the one that is being fed. */
class EpochChanged extends Error {}

export class SegmentLoader {
  #video;
  #window;
  #buffers;
  #edge;
  /** @type {Map<string, import("../media/boxes.js").InitTrack[]>} The tracks of each lane. */
  #tracks = new Map();
  /** @type {Map<string, string>} The init segment that each lane has, by its URL. */
  #maps = new Map();
  /** @type {Map<string, {url: string, bytes: Promise<Uint8Array>, abort: AbortController}>} Asked for early, by lane. */
  #early = new Map();
  /** @type {Map<number, number>} Seconds to add to media times, by discontinuity sequence number. */
  #offsets = new Map();
  #publication = "";
  /** The window's epoch that is being fed. */
  #epoch = "";
  /** @type {Rendition["kind"][]} Which renditions are being fed. */
  #kinds = [];
  /** Discontinuity sequence number of the picture with which those were chosen. */
  #chosenAt = 0;

  /**
   * @param {HTMLVideoElement} video
   * @param {import("../media/live-window.js").LiveWindow} window
   * @param {import("./source-buffers.js").SourceBuffers} buffers
   * @param {import("./live-edge.js").LiveEdge} edge
   */
  constructor(video, window, buffers, edge) {
    this.#video = video;
    this.#window = window;
    this.#buffers = buffers;
    this.#edge = edge;
  }

  /**
   * Feeds until the stream ends; resolves with the reason and never throws.
   * @param {number | "edge"} from Seconds, or the newest place to begin at.
   * @param {string} publication
   * @param {AbortSignal} signal
   * @returns {Promise<import("../media/playback-result.js").PlaybackResult>}
   */
  async run(from, publication, signal) {
    this.#publication = publication;
    this.#offsets.clear();
    try {
      while (!this.#window.isReady && !signal.aborted) {
        if (this.#window.refusal !== null) throw this.#window.refusal;
        await this.#window.changed(signal);
      }
      this.#epoch = this.#window.epoch;
      for (let start = from; !signal.aborted;) {
        try {
          await this.#feedAll(start, signal);
          await this.#buffers.end();
          return { kind: "finished" };
        } catch (error) {
          if (!(error instanceof NewTracks)) throw error;
          start = error.time;
          await this.#playedTo(start, signal);
        }
      }
      return { kind: "stopped" };
    } catch (error) {
      if (signal.aborted) return { kind: "stopped" };
      return error instanceof EpochChanged ? { kind: "newEpoch" } : failure(error);
    }
  }

  /** @param {number | "edge"} from @param {AbortSignal} signal */
  async #feedAll(from, signal) {
    this.#check();
    const [main] = this.#window.renditions;
    const atEdge = from === "edge";
    const wanted = atEdge ? newestStart(main) : from;
    const renditions = this.#choose(segmentAt(main, wanted));
    this.#maps.clear();
    for (const rendition of renditions) await this.#readTracks(rendition, segmentAt(rendition, wanted), signal);
    const restarted = await this.#buffers.prepare(this.#lanes(), this.#publication);
    signal.throwIfAborted();
    const begins = atEdge ? wanted : await this.#makePlace(wanted, restarted);
    signal.throwIfAborted();
    const stopped = new AbortController();
    const both = anySignal(signal, stopped.signal);
    try {
      await Promise.all(renditions.map((rendition) => this.#feed(rendition, begins, atEdge, both)));
    } finally {
      stopped.abort();
      this.#early.clear();
    }
  }

  /**
   * Goes on after what is there, or begins with empty buffers.
   * @param {number} time @param {boolean} restarted
   */
  async #makePlace(time, restarted) {
    const { buffered } = this.#video;
    const last = buffered.length - 1;
    if (!restarted && last >= 0 && buffered.start(last) <= time + 0.1 && time <= buffered.end(last)) {
      return buffered.end(last);
    }
    await this.#buffers.clear();
    if (this.#video.currentTime !== time) this.#video.currentTime = time;
    return time;
  }

  /** @param {Rendition} rendition @param {number} from @param {boolean} atEdge @param {AbortSignal} signal */
  async #feed(rendition, from, atEdge, signal) {
    const first = segmentAt(rendition, from);
    /** @type {Cursor} */
    let cursor = { sequence: first.sequence, part: 0 };
    let hasBegun = false;
    for (;;) {
      await this.#room(rendition, signal);
      signal.throwIfAborted();
      this.#check();
      if (cursor.part === 0) {
        rendition = this.#present(rendition, cursor.sequence);
        this.#checkAudio(cursor.sequence);
      }
      const { timeline, playlist } = rendition;
      this.#edge.floor = atEdge && playlist && !playlist.canBlockReload ? playlist.targetDuration : 0;
      const segment = timeline.numbered(cursor.sequence);
      const oldest = timeline.segments.at(0)?.sequence ?? cursor.sequence;
      if (cursor.sequence < oldest) cursor = { sequence: oldest, part: 0 };
      else if (segment?.gap) cursor = after(segment);
      else if (segment?.complete && (cursor.part === 0 || segment.parts.length === 0)) {
        hasBegun = await this.#fetch(rendition, segment, segment, 0, signal) || hasBegun;
        cursor = after(segment);
      } else if (segment && cursor.part < segment.parts.length) {
        const part = segment.parts[cursor.part];
        const offset = segment.parts.slice(0, cursor.part).reduce((sum, p) => sum + p.duration, 0);
        if (!part.gap) hasBegun = await this.#fetch(rendition, segment, part, offset, signal) || hasBegun;
        cursor = { ...cursor, part: cursor.part + 1 };
      } else if (segment?.complete) cursor = after(segment);
      else if (playlist?.isEnded) return;
      else {
        if (hasBegun) this.#edge.arrived();
        this.#ask(rendition, signal);
        await this.#window.changed(signal);
        continue;
      }
      if (!atEdge) this.#edge.arrived();
    }
  }

  /** Throws where no more will come of what is being fed. */
  #check() {
    const { epoch, refusal } = this.#window;
    if (epoch !== this.#epoch) throw new EpochChanged();
    if (refusal !== null) throw refusal;
  }

  /**
   * What to feed from a segment on: the main rendition, and separate sound where there is any of it.
   * @param {PlacedSegment} segment Of the main one.
   * @returns {Rendition[]}
   */
  #choose(segment) {
    this.#chosenAt = segment.discontinuity;
    const chosen = this.#window.renditions.filter(({ kind, timeline, isReported }) => {
      if (kind === "main") return true;
      const own = timeline.numbered(segment.sequence);
      // What is not listed yet is expected where there was some before.
      return own === null ? isReported !== false && !(timeline.segments.at(-1)?.gap ?? true) : !own.gap;
    });
    this.#kinds = chosen.map((r) => r.kind);
    return chosen;
  }

  /**
   * Throws where sound comes to a picture without any, or goes from it: a buffer that gets nothing any more would hold up
   * the other. A single missing segment is a hole, and no reason to begin anew.
   * @param {number} sequence
   */
  #checkAudio(sequence) {
    const [main, audio] = this.#window.renditions;
    const segment = main.timeline.numbered(sequence);
    if (segment === null || segment.gap || audio === undefined) return;
    const own = audio.timeline.numbered(sequence);
    if (!this.#kinds.includes("audio")) {
      if (own !== null && !own.gap && own.map !== null) throw new NewTracks(segment.start);
      return;
    }
    const isNext = own === null && sequence > (audio.timeline.segments.at(-1)?.sequence ?? Infinity);
    if (segment.discontinuity !== this.#chosenAt) {
      if (own?.gap || (isNext && audio.isReported === false)) throw new NewTracks(segment.start);
    }
    const before = audio.timeline.numbered(sequence - 1), start = main.timeline.numbered(sequence - 1)?.start;
    if (own?.gap && before?.gap && start !== undefined) throw new NewTracks(start);
  }

  /**
   * The rendition to go on with at the beginning of a segment: the one that has taken the other's place, once it has that
   * segment, whose number and times are the same in both. It is waited for where nobody reads on of the former one: of a
   * segment that was listed there last, the end would never come.
   * @param {Rendition} rendition
   * @param {number} sequence
   */
  #present(rendition, sequence) {
    const present = this.#window.renditions.find((r) => r.kind === rendition.kind) ?? rendition;
    const isOver = sequence > rendition.lastSequence;
    return isOver || present.timeline.numbered(sequence) !== null ? present : rendition;
  }

  /**
   * Waits while enough is ahead of the playhead.
   * @param {Rendition} rendition @param {AbortSignal} signal
   */
  async #room(rendition, signal) {
    await this.#buffers.trim();
    const { currentTime } = this.#video;
    while (!signal.aborted && this.#buffers.bufferedEnd(rendition.kind, this.#video.currentTime) >
        this.#video.currentTime + AHEAD) {
      await pause(ROOM_MILLISECONDS, signal);
      if (this.#video.currentTime > currentTime + AHEAD) await this.#buffers.trim();
    }
  }

  /**
   * @param {Rendition} rendition
   * @param {PlacedSegment} segment
   * @param {import("../media/playlist.js").Resource} resource The segment, or one of its parts.
   * @param {number} offset Seconds from the segment's beginning.
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} Whether there was anything; else there is a hole in the media.
   */
  async #fetch(rendition, segment, resource, offset, signal) {
    if (segment.map !== null && this.#maps.get(rendition.kind) !== segment.map.url) {
      await this.#changeTracks(rendition, segment, signal);
    }
    for (let tries = 1; ; tries += 1) {
      try {
        const bytes = await this.#bytes(rendition, resource, signal);
        await this.#append(rendition, segment, bytes, offset);
        return true;
      } catch (error) {
        if (signal.aborted) throw error;
        // What has left the window is no reason to stop.
        if (error instanceof HTTPFailure && error.isGone) return false;
        if (tries >= TRIES || !this.#buffers.isOpen) throw error;
        await pause(RETRY_MILLISECONDS * 2 ** tries, signal);
      }
    }
  }

  /**
   * Asks for the part that comes next before it is there; the answer comes when it is made, and is used when the playlist
   * lists it: only then it is known which init segment it belongs to.
   * @param {Rendition} rendition
   * @param {AbortSignal} signal
   */
  #ask(rendition, signal) {
    const hint = rendition.playlist?.hint ?? null;
    const early = this.#early.get(rendition.kind);
    // A hinted range without an end goes on to the end of the segment: nothing to wait for as a whole.
    if (this.#window.pace !== "parts" || hint === null || hint.start > 0 || early?.url === hint.url) return;
    early?.abort.abort();
    const abort = new AbortController();
    const deadline = anySignal(signal, abort.signal, timeout(TIMEOUT_MILLISECONDS));
    const bytes = fetchBytes({ url: hint.url, range: null }, deadline, this.#throughput(rendition));
    bytes.catch(() => {});
    this.#early.set(rendition.kind, { url: hint.url, bytes, abort });
  }

  /**
   * @param {Rendition} rendition
   * @param {import("../media/playlist.js").Resource} resource
   * @param {AbortSignal} signal
   */
  async #bytes(rendition, resource, signal) {
    const early = this.#early.get(rendition.kind);
    if (early?.url === resource.url && resource.range === null) {
      this.#early.delete(rendition.kind);
      try {
        return await early.bytes;
      } catch {
        signal.throwIfAborted();
      }
    }
    const deadline = anySignal(signal, timeout(TIMEOUT_MILLISECONDS));
    return fetchBytes(resource, deadline, this.#throughput(rendition));
  }

  /**
   * Only the picture is measured: sound is too little.
   * @param {Rendition} rendition
   */
  #throughput(rendition) { return rendition.kind === "main" ? this.#window.throughput : null; }

  /**
   * @param {Rendition} rendition
   * @param {PlacedSegment} segment
   * @param {Uint8Array} bytes
   * @param {number} offset Seconds from the segment's beginning.
   */
  async #append(rendition, segment, bytes, offset) {
    const tracks = this.#tracks.get(rendition.kind) ?? [];
    const group = segment.discontinuity;
    if (!this.#offsets.has(group)) {
      const told = segment.start + offset, found = startSeconds(bytes, tracks) ?? told;
      this.#offsets.set(group, Math.abs(told - found) < SAME_AXIS ? 0 : told - found);
    }
    await this.#buffers.append(rendition.kind, bytes, this.#offsets.get(group));
  }

  /** @param {Rendition} rendition @param {PlacedSegment} segment @param {AbortSignal} signal */
  async #readTracks(rendition, segment, signal) {
    if (segment.map === null) throw new Error("the playlist names no init segment");
    const init = await fetchBytes(segment.map, signal);
    const tracks = readInit(init);
    if (tracks.length === 0) throw new Error("the init segment announces no track");
    this.#tracks.set(rendition.kind, tracks);
    return init;
  }

  /** @param {Rendition} rendition @param {PlacedSegment} segment @param {AbortSignal} signal */
  async #changeTracks(rendition, segment, signal) {
    const init = await this.#readTracks(rendition, segment, signal);
    const lane = this.#lanes().find((l) => l.key === rendition.kind);
    if (lane === undefined || !this.#buffers.fits(lane)) throw new NewTracks(segment.start);
    await this.#buffers.prepare(this.#lanes(), this.#publication);
    await this.#buffers.append(rendition.kind, init);
    this.#maps.set(rendition.kind, segment.map?.url ?? "");
  }

  #lanes() {
    return this.#kinds.map((kind) => ({ key: kind, tracks: this.#tracks.get(kind) ?? [] }));
  }

  /**
   * Waits until the playhead has come to the end of what is there.
   * @param {number} time @param {AbortSignal} signal
   */
  async #playedTo(time, signal) {
    let last = -1;
    while (!signal.aborted && this.#video.currentTime < time - 0.1) {
      if (!this.#video.paused && this.#video.currentTime === last) return;
      last = this.#video.currentTime;
      await pause(ROOM_MILLISECONDS, signal);
    }
  }
}

/** @param {Rendition} rendition @param {number} time @returns {PlacedSegment} */
function segmentAt(rendition, time) {
  const segment = rendition.timeline.at(time);
  if (segment === null) throw new Error("the playlist is empty");
  // The segment after a boundary, where only a rounding error of the playhead lies before it.
  const next = rendition.timeline.numbered(segment.sequence + 1);
  return next !== null && next.start - time < 0.02 ? next : segment;
}

/** @param {Rendition} rendition @returns {number} Where the newest segment begins. */
function newestStart(rendition) {
  const newest = rendition.timeline.segments.findLast((s) => !s.gap && (s.complete || s.parts[0]?.independent));
  return newest?.start ?? 0;
}

/** @param {PlacedSegment} segment @returns {Cursor} */
const after = (segment) => ({ sequence: segment.sequence + 1, part: 0 });
