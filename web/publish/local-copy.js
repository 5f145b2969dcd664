/**
 * A copy of what is sent, kept in this browser: for the time that the network is gone. The stream comes first. A machine that is
 * too slow for both has a copy of that time alone.
 */

import { CopyParts } from "../media/copy-parts.js";

/** The most that is kept. */
const BYTES = 256 << 20;
const MILLISECONDS = 15 * 60_000;
/** A part is a file. Old ones go as a whole. One that is full ends earlier. */
const PART_MILLISECONDS = 5 * 60_000;
const SLICE_MILLISECONDS = 1000;
/** What costs least stands first. VP8 comes last: its encoder has held a camera at 4 fps where the others left it 30. */
const TYPES = [
  "video/mp4;codecs=avc1.42E01F,opus", "video/mp4;codecs=avc1.42E01F,mp4a.40.2", "video/webm;codecs=vp9,opus", "video/mp4", "video/webm",
];
const AUDIO_BITS_PER_SECOND = 96_000;

/** @typedef {import("../media/copy-parts.js").CopyPart<Blob>} Part */

export const type = globalThis.MediaRecorder && TYPES.find((name) => MediaRecorder.isTypeSupported(name));

export class LocalCopy {
  /** @type {CopyParts<Blob>} */
  #parts = new CopyParts(BYTES, MILLISECONDS);
  /** @type {MediaRecorder | null} */
  #recorder = null;
  #timer = 0;
  #isForOutages = false;
  /** @type {(() => {video: MediaStreamTrack, audio: MediaStreamTrack, bitrate: number}) | null} */
  #source = null;

  /** @param {() => {video: MediaStreamTrack, audio: MediaStreamTrack, bitrate: number}} source */
  start(source) {
    this.#parts.clear();
    this.#source = source;
    this.#isForOutages = false;
    this.#begin();
  }

  /** Other tracks are sent: another part begins, since a recorder takes no other ones. */
  change() { if (this.#recorder !== null) this.#begin(); }

  /** From now on only the time is kept in which the connection is lost. */
  restrict() {
    this.#isForOutages = true;
    this.#end();
  }

  /** @param {boolean} isLost Whether the connection is lost. */
  follow(isLost) {
    if (!this.#isForOutages) return;
    if (isLost) this.#begin();
    else this.#end();
  }

  #begin() {
    this.#end();
    if (this.#source === null || type === undefined) return;
    const { video, audio, bitrate } = this.#source();
    const part = this.#parts.begin(Date.now());
    try {
      const recorder = new MediaRecorder(new MediaStream([video, audio]), {
        mimeType: type, videoBitsPerSecond: bitrate, audioBitsPerSecond: AUDIO_BITS_PER_SECOND,
      });
      recorder.addEventListener("dataavailable", ({ data }) => {
        this.#parts.add(part, data, data.size, Date.now());
        if (recorder === this.#recorder && this.#parts.isFull(part)) this.#begin();
      });
      recorder.start(SLICE_MILLISECONDS);
      this.#recorder = recorder;
      this.#timer = setTimeout(() => this.#begin(), PART_MILLISECONDS);
    } catch {
      // A browser that cannot record these tracks publishes without a copy.
      this.#recorder = null;
    }
  }

  /** Ends the recording. The parts stay. @returns {Promise<void>} When all is there. */
  stop() {
    this.#source = null;
    const recorder = this.#recorder;
    const isOver = recorder === null || recorder.state === "inactive";
    const done = isOver ? Promise.resolve()
      : /** @type {Promise<void>} */ (new Promise((resume) => recorder.addEventListener("stop", () => resume(), { once: true })));
    this.#end();
    return done;
  }

  #end() {
    clearTimeout(this.#timer);
    if (this.#recorder !== null && this.#recorder.state !== "inactive") this.#recorder.stop();
    this.#recorder = null;
  }

  /** @returns {Part[]} Oldest first. */
  get parts() { return this.#parts.parts; }

  forget() { this.#parts.clear(); }

  /** @param {Part} part @returns {Blob} The file. */
  static fileOf(part) { return new Blob(part.content, { type: type?.split(";")[0] }); }

  /** @param {string} name @param {Part} part @returns {string} The name of its file. */
  static nameOf(name, part) {
    const time = new Date(part.startedAt).toISOString().replace(/[-:]|\.\d+/g, "");
    return `${name}-${time}.${type?.startsWith("video/mp4") ? "mp4" : "webm"}`;
  }
}
