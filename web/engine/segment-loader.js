/**
 * Loads media of the live window into the buffers: whole segments from any position, and parts at the edge, each as soon
 * as it is complete.
 */

import { readInit, startSeconds } from "../media/boxes.js";
import { anySignal, fetchBytes, pause, timeout } from "../media/fetching.js";
import { failure, HTTPFailure } from "../media/playback-result.js";

/** Seconds of media to keep buffered ahead of the playhead. */
const AHEAD = 20;
/** Interval at which a waiting download checks whether the buffer has room. */
const ROOM_MILLISECONDS = 500;
/** Number of attempts for one resource before the connection counts as lost. */
const TRIES = 4;
const RETRY_MILLISECONDS = 300;
/** Time limit of one request. */
const TIMEOUT_MILLISECONDS = 20_000;
/** If media and playlist times differ by this many seconds after a discontinuity, the media has another time axis. */
const SAME_AXIS = 0.5;

/** @typedef {import("../media/rendition.js").Rendition} Rendition */
/** @typedef {import("../media/timeline.js").PlacedSegment} PlacedSegment */
/** @typedef {{sequence: number, part: number}} Cursor The next segment or part to fetch. */

/** Thrown when the tracks change so that the element must be reset. */
class NewTracks extends Error {
  /** @param {number} time Media time in seconds at which the new tracks begin. */
  constructor(time) {
    super("the tracks have changed");
    this.time = time;
  }
}

/** Thrown when the window shows another epoch than the one being loaded. */
class EpochChanged extends Error {}

export class SegmentLoader {
  #video;
  #window;
  #buffers;
  #edge;
  /** @type {Map<string, import("../media/boxes.js").InitTrack[]>} The tracks of each lane. */
  #tracks = new Map();
  /** @type {Map<string, string>} The URL of the init segment of each lane. */
  #maps = new Map();
  /** @type {Map<string, {url: string, bytes: Promise<Uint8Array>, abort: AbortController}>} Requested hints, by lane. */
  #early = new Map();
  /** @type {Map<number, number>} Seconds to add to media times, by discontinuity sequence number. */
  #offsets = new Map();
  #publication = "";
  /** The epoch of the window that is being loaded. */
  #epoch = "";
  /** @type {Rendition["kind"][]} The renditions that are being loaded. */
  #kinds = [];
  /** Discontinuity sequence number of the main rendition at which #kinds was chosen. */
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
   * Loads media until the stream ends. Resolves with the reason; never throws.
   * @param {number | "edge"} from Seconds of media, or "edge" for the newest position.
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
      // Numbers are the same in all renditions, and times only once media of each were read.
      const { sequence } = segmentAt(main, begins);
      await Promise.all(renditions.map((rendition) => this.#feed(rendition, sequence, atEdge, both)));
    } finally {
      stopped.abort();
      this.#early.clear();
    }
  }

  /**
   * Continues after the buffered media, or empties the buffers.
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

  /**
   * @param {Rendition} rendition @param {number} first Number of the first segment. @param {boolean} atEdge
   * @param {AbortSignal} signal
   */
  async #feed(rendition, first, atEdge, signal) {
    /** @type {Cursor} */
    let cursor = { sequence: first, part: 0 };
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
      // What was appended for a position that the viewer has left is no media for the new one.
      signal.throwIfAborted();
      if (!atEdge) this.#edge.arrived();
    }
  }

  /** Throws if no more media will come of this epoch. */
  #check() {
    const { epoch, refusal } = this.#window;
    if (epoch !== this.#epoch) throw new EpochChanged();
    if (refusal !== null) throw refusal;
  }

  /**
   * Chooses what to load from a segment on: the main rendition, and separate audio where there is any.
   * @param {PlacedSegment} segment A segment of the main rendition.
   * @returns {Rendition[]}
   */
  #choose(segment) {
    this.#chosenAt = segment.discontinuity;
    const chosen = this.#window.renditions.filter((one) => one.kind === "main" || one.hasMedia(segment.sequence));
    this.#kinds = chosen.map((r) => r.kind);
    return chosen;
  }

  /**
   * Throws if audio begins or ends beside the video: a source buffer without new media would stall the other one. A single
   * missing segment is only a gap.
   * @param {number} sequence
   */
  #checkAudio(sequence) {
    const [main, audio] = this.#window.renditions;
    const segment = main.timeline.numbered(sequence);
    if (segment === null || segment.gap || audio === undefined) return;
    const own = audio.timeline.numbered(sequence);
    if (!this.#kinds.includes("audio")) {
      // Its list may come later than the video's each time: it is not awaited. Where that ends with the segment before,
      // that one counts.
      const newest = own ?? audio.timeline.numbered(sequence - 1);
      if (newest !== null && newest.map !== null && audio.hasMedia(sequence)) throw new NewTracks(segment.start);
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
   * Returns the rendition to use for a segment. If another rendition has replaced the present one, it is used as soon as it
   * lists that segment. Number and times of a segment are the same in both. After the last segment of the former rendition,
   * the new one is awaited. The former playlist is no longer read, so a segment listed last there would never be completed.
   * @param {Rendition} rendition
   * @param {number} sequence
   */
  #present(rendition, sequence) {
    const present = this.#window.renditions.find((r) => r.kind === rendition.kind) ?? rendition;
    const isOver = sequence > rendition.lastSequence;
    return isOver || present.timeline.numbered(sequence) !== null ? present : rendition;
  }

  /**
   * Waits while enough media is buffered ahead of the playhead.
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
   * @param {number} offset Seconds from the beginning of the segment.
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} Whether the resource existed; if not, there is a gap in the media.
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
        // A segment that has left the window is skipped.
        if (error instanceof HTTPFailure && error.isGone) return false;
        if (tries >= TRIES || !this.#buffers.isOpen) throw error;
        await pause(RETRY_MILLISECONDS * 2 ** tries, signal);
      }
    }
  }

  /**
   * Requests the hinted part before it exists. The server responds when the part is complete. The bytes are used when the
   * playlist lists the part, since only then its init segment is known.
   * @param {Rendition} rendition
   * @param {AbortSignal} signal
   */
  #ask(rendition, signal) {
    const hint = rendition.playlist?.hint ?? null;
    const early = this.#early.get(rendition.kind);
    // A hinted range without an end reaches to the end of the segment, so it cannot be awaited as one part.
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
   * Measures only the main rendition: audio has too few bytes.
   * @param {Rendition} rendition
   */
  #throughput(rendition) { return rendition.kind === "main" ? this.#window.throughput : null; }

  /**
   * @param {Rendition} rendition
   * @param {PlacedSegment} segment
   * @param {Uint8Array} bytes
   * @param {number} offset Seconds from the beginning of the segment.
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
   * Waits until the playhead has reached the end of the buffered media.
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
  // Rounding may put the playhead just before a boundary. Then the segment after it is meant.
  const next = rendition.timeline.numbered(segment.sequence + 1);
  return next !== null && next.start - time < 0.02 ? next : segment;
}

/** @param {Rendition} rendition @returns {number} Start of the newest segment. */
function newestStart(rendition) {
  const newest = rendition.timeline.segments.findLast((s) => !s.gap && (s.complete || s.parts[0]?.independent));
  return newest?.start ?? 0;
}

/** @param {PlacedSegment} segment @returns {Cursor} */
const after = (segment) => ({ sequence: segment.sequence + 1, part: 0 });
