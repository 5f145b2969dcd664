/** The MediaSource of the video element: one source buffer for all tracks, or one for video and one for audio. */

import { MediaSourceClass, mimeType, unplayable } from "../media/codecs.js";
import { CaptionTrack } from "./caption-track.js";

/** Seconds behind the playhead that stay buffered. */
const BACK_BUFFER = 30;
/** Less than this many seconds are not removed: each removal makes the browser search through its samples. */
const TRIM_STEP = 10;
/** Seconds that stay behind the playhead when the browser's memory is full. */
const SCARCE_BACK_BUFFER = 2;

/** Longer than any stream. The player itself limits seeks by the playlist. */
const END_OF_TIME = 2 ** 31;

/**
 * @typedef {object} Lane Content of one source buffer.
 * @property {string} key "main", or "audio" for separate audio.
 * @property {import("../media/boxes.js").InitTrack[]} tracks
 */

/** Thrown for codecs that this browser cannot play. */
export class UnplayableCodecs extends Error {
  /** @param {string[]} codecs */
  constructor(codecs) {
    super(`this browser cannot play ${codecs.join(", ")}`);
    this.codecs = codecs;
  }
}

/** One SourceBuffer. Its operations run one after the other. */
class LaneBuffer {
  #last = Promise.resolve();
  /** @param {SourceBuffer} buffer @param {string} shape @param {string} codecs */
  constructor(buffer, shape, codecs) {
    this.buffer = buffer;
    this.shape = shape;
    this.codecs = codecs;
  }

  /**
   * Runs an operation after all earlier ones are complete.
   * @param {(buffer: SourceBuffer) => void} operation Starts it. If the buffer is then updating, "updateend" is awaited.
   * @returns {Promise<void>}
   */
  run(operation) {
    const done = this.#last.then(async () => {
      operation(this.buffer);
      if (this.buffer.updating) await once(this.buffer, "updateend");
    });
    this.#last = done.catch(() => {});
    return done;
  }
}

export class SourceBuffers {
  /** Bytes of media appended so far. */
  bytes = 0;
  /** @type {string[]} Codec strings of the present tracks. */
  codecs = [];
  #video;
  #beforeReset;
  /** @type {MediaSource | null} */
  #source = null;
  #objectURL = "";
  /** @type {Map<string, LaneBuffer>} */
  #lanes = new Map();
  #publication = "";
  #captions;
  /** @type {Map<string, import("../media/boxes.js").InitTrack[]>} By lane. */
  #tracks = new Map();

  /**
   * @param {HTMLVideoElement} video
   * @param {() => void} beforeReset Called before the element is reset, while its last frame can still be read.
   */
  constructor(video, beforeReset) {
    this.#video = video;
    this.#beforeReset = beforeReset;
    this.#captions = new CaptionTrack(video);
  }

  get isOpen() { return this.#source?.readyState === "open" && !this.#video.error; }

  /**
   * Prepares the buffers for these tracks. Keeps the buffers where that is possible, else resets the element.
   * @param {Lane[]} lanes
   * @param {string} publication A text that is different for each publication of the stream.
   * @param {boolean} restart Whether to reset in any case.
   * @returns {Promise<boolean>} Whether the element was reset.
   */
  async prepare(lanes, publication, restart = false) {
    const codecs = lanes.flatMap((lane) => lane.tracks.map((t) => t.codec));
    const refused = unplayable(codecs);
    if (refused.length > 0) throw new UnplayableCodecs(refused);
    this.codecs = codecs;
    this.#tracks = new Map(lanes.map((lane) => [lane.key, lane.tracks]));
    const continues = !restart && this.isOpen && this.#publication === publication && lanes.length === this.#lanes.size &&
      lanes.every((lane) => this.#lanes.get(lane.key)?.shape === shape(lane));
    this.#publication = publication;
    if (!continues) {
      await this.#attach(lanes);
      return true;
    }
    for (const lane of lanes) {
      const known = /** @type {LaneBuffer} */ (this.#lanes.get(lane.key));
      const wanted = mimeType(lane.tracks.map((t) => t.codec));
      if (known.codecs === wanted) continue;
      known.codecs = wanted;
      await known.run((buffer) => buffer.changeType(wanted));
    }
    return false;
  }

  /**
   * Whether media of these tracks can be appended without a reset.
   * @param {Lane} lane
   */
  fits(lane) {
    return this.isOpen && this.#lanes.get(lane.key)?.shape === shape(lane);
  }

  /**
   * @param {string} key The lane's key.
   * @param {Uint8Array} bytes An init segment, or whole fragments.
   * @param {number} offset Seconds to add to all times.
   */
  async append(key, bytes, offset = 0) {
    const lane = this.#lanes.get(key);
    for (let tries = 0; ; tries += 1) {
      if (lane === undefined || !this.isOpen) throw new Error("the browser closed the player");
      try {
        await lane.run((buffer) => {
          if (buffer.timestampOffset !== offset) buffer.timestampOffset = offset;
          buffer.appendBuffer(bytes);
        });
        break;
      } catch (error) {
        const isFull = error instanceof DOMException && error.name === "QuotaExceededError";
        if (!isFull || tries > 0) throw error;
        await this.trim(SCARCE_BACK_BUFFER);
      }
    }
    if (this.#video.error) throw new Error(this.#video.error.message || "the browser could not decode the media");
    this.bytes += bytes.length;
    this.#captions.take(bytes, this.#tracks.get(key) ?? [], offset);
  }

  /**
   * Removes media far behind the playhead.
   * @param {number} keep Seconds to keep.
   */
  async trim(keep = BACK_BUFFER) {
    const step = keep === BACK_BUFFER ? TRIM_STEP : 0.1;
    for (const { buffer, run } of this.#bound()) {
      if (!this.isOpen || buffer.buffered.length === 0) continue;
      const start = buffer.buffered.start(0), end = this.#video.currentTime - keep;
      if (end >= start + step) await run((b) => b.remove(start, end));
    }
  }

  /** Empties the buffers. Media of any time may follow. */
  async clear() {
    for (const { buffer, run } of this.#bound()) {
      if (this.isOpen && buffer.buffered.length > 0) await run((b) => b.remove(0, Infinity));
    }
  }

  /** Marks the end of the stream. The element ends when all media has been shown. */
  async end() {
    for (const { run } of this.#bound()) await run(() => {});
    if (this.isOpen) this.#source?.endOfStream();
  }

  /** End of the buffered range that contains a time, in seconds, in one lane; the time itself if there is none. */
  bufferedEnd(/** @type {string} */ key, /** @type {number} */ time) {
    const ranges = this.isOpen ? this.#lanes.get(key)?.buffer.buffered : undefined;
    for (let n = 0; ranges !== undefined && n < ranges.length; n += 1) {
      if (ranges.start(n) <= time + 0.1 && time < ranges.end(n)) return ranges.end(n);
    }
    return time;
  }

  /** The next media has another time axis, so the element is reset for it. */
  forget() { this.#publication = ""; }

  /** Releases the video element. */
  detach() {
    if (this.#objectURL === "") return;
    URL.revokeObjectURL(this.#objectURL);
    this.#objectURL = "";
    this.#source = null;
    this.#lanes.clear();
    this.#video.removeAttribute("src");
    this.#video.load();
  }

  /** @param {Lane[]} lanes */
  async #attach(lanes) {
    if (MediaSourceClass === null) throw new Error("this browser has no Media Source Extensions");
    this.#beforeReset();
    this.#captions.reset();
    if (this.#objectURL !== "") URL.revokeObjectURL(this.#objectURL);
    const source = new MediaSourceClass();
    const opened = once(source, "sourceopen", "sourceclose");
    this.#objectURL = URL.createObjectURL(source);
    // Without this, Apple's ManagedMediaSource waits for an AirPlay alternative and never opens.
    if (MediaSourceClass === globalThis.ManagedMediaSource) this.#video.disableRemotePlayback = true;
    this.#video.src = this.#objectURL;
    await opened;
    this.#source = source;
    // Otherwise a seek would be limited to buffered media (W3C Media Source, "seekable").
    source.duration = Infinity;
    source.setLiveSeekableRange?.(0, END_OF_TIME);
    this.#lanes = new Map(lanes.map((lane) => {
      const codecs = mimeType(lane.tracks.map((t) => t.codec));
      return [lane.key, new LaneBuffer(source.addSourceBuffer(codecs), shape(lane), codecs)];
    }));
  }

  #bound() {
    return [...this.#lanes.values()].map((lane) => ({ buffer: lane.buffer, run: lane.run.bind(lane) }));
  }
}

/**
 * Source buffers can change to another codec, but not to another set of tracks. The ID of a single track may change (Media
 * Source Extensions §3.5.7).
 * @param {Lane} lane
 */
const shape = (lane) => lane.tracks.map((t) => lane.tracks.length === 1 ? t.kind : `${t.id}${t.kind}`).join();

/** @param {EventTarget} target @param {string[]} events @returns {Promise<void>} */
function once(target, ...events) {
  return new Promise((resume) => {
    for (const event of events) target.addEventListener(event, () => resume(), { once: true });
  });
}
