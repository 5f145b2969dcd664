/** Closed captions of the video as cues of a text track, so that the browser's own settings of captions apply. */

import { captionPairs } from "../media/caption-data.js";
import { CaptionDecoder } from "../media/caption-decoder.js";
import { DigitalCaptionDecoder } from "../media/digital-caption-decoder.js";

/** @typedef {import("../media/caption-data.js").CaptionPairs} CaptionPairs */
/** @typedef {import("../media/caption-changes.js").Line} Line */
/** @typedef {(time: number, frame: CaptionPairs) => void} Decoding Takes the pairs of a frame. */

/** The most cues that are kept. */
const MAXIMUM_CUES = 2000;
/** Seconds after which captions go that nothing has erased. */
const LONGEST = 16;
/** Decode times further apart than this belong to media that does not continue. */
const GAP = 1;

export class CaptionTrack {
  /** CC1 and CC2 of the first field of CEA-608, CC3 and CC4 of the second one, and service 1 of CEA-708. */
  #services;
  /** @type {CaptionPairs[]} Frames that wait for those that are shown before them. */
  #waiting = [];
  #decode = -Infinity;

  /** @param {HTMLVideoElement} video */
  constructor(video) {
    this.#services = [1, 2, 3, 4].map((number) => new CaptionService(video, `CC${number}`, (show) => line21(number, show)));
    this.#services.push(new CaptionService(video, "Service 1", digital));
  }

  /**
   * @param {Uint8Array} bytes Whole fragments.
   * @param {import("../media/boxes.js").InitTrack[]} tracks
   * @param {number} shift Seconds to add to all times.
   */
  take(bytes, tracks, shift) {
    for (const frame of captionPairs(bytes, tracks)) {
      if (Math.abs(frame.decode - this.#decode) > GAP) this.#jump(frame.decode + shift);
      this.#decode = frame.decode;
      this.#waiting.push(frame);
      // A frame that is decoded later is shown later, too.
      const ready = this.#waiting.filter((f) => f.time <= frame.decode).sort((a, b) => a.time - b.time);
      if (ready.length > 0) this.#waiting = this.#waiting.filter((f) => f.time > frame.decode);
      for (const found of ready) {
        for (const service of this.#services) service.take(found.time + shift, found);
      }
    }
  }

  /** Forgets everything: other media follows. */
  reset() {
    this.#jump(-Infinity);
    this.#decode = -Infinity;
  }

  /** @param {number} time From here on other media follows, in seconds. */
  #jump(time) {
    this.#waiting = [];
    for (const service of this.#services) service.jump(time);
  }
}

/** @param {number} number 1 to 4. @param {(time: number, lines: Line[]) => void} show @returns {Decoding} */
function line21(number, show) {
  const decoder = new CaptionDecoder(show, number % 2 === 1 ? 1 : 2), own = number > 2 ? 2 : 1;
  return (time, frame) => {
    for (const [field, first, second] of frame.pairs) if (field === own) decoder.take(time, first, second);
    decoder.tick(time);
  };
}

/** @param {(time: number, lines: Line[]) => void} show @returns {Decoding} */
function digital(show) {
  const decoder = new DigitalCaptionDecoder(show);
  return (time, frame) => { decoder.take(time, frame.packets); };
}

/** One service of captions, as a text track. */
class CaptionService {
  #video;
  #label;
  #make;
  /** @type {TextTrack | null} Made with the first caption. */
  #track = null;
  /** @type {VTTCue[]} In order. */
  #cues = [];
  /** @type {Decoding} */
  #decode;

  /**
   * @param {HTMLVideoElement} video
   * @param {string} label
   * @param {(show: (time: number, lines: Line[]) => void) => Decoding} make
   */
  constructor(video, label, make) {
    this.#video = video;
    this.#label = label;
    this.#make = make;
    this.#decode = this.#begin();
  }

  /** @param {number} time Seconds. @param {CaptionPairs} frame */
  take(time, frame) { this.#decode(time, frame); }

  /** @param {number} time From here on other media follows, in seconds. */
  jump(time) {
    this.#decode = this.#begin();
    for (const cue of this.#cues.filter((c) => c.startTime >= time)) this.#track?.removeCue(cue);
    this.#cues = this.#cues.filter((c) => c.startTime < time);
  }

  #begin() { return this.#make((time, lines) => { this.#show(time, lines); }); }

  /** @param {number} time @param {Line[]} lines */
  #show(time, lines) {
    const last = this.#cues.at(-1);
    if (last !== undefined && last.endTime > time && last.startTime <= time) last.endTime = time;
    if (lines.length === 0) return;
    this.#track ??= this.#video.addTextTrack("captions", this.#label);
    const text = lines.map((line) => line.text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"));
    const cue = new VTTCue(time, time + LONGEST, text.join("\n"));
    // Rows 1 to 15 are within the middle 80 % of the height.
    cue.snapToLines = false;
    cue.line = 10 + (lines[0].row - 1) / 15 * 80;
    this.#track.addCue(cue);
    this.#cues.push(cue);
    if (this.#cues.length > MAXIMUM_CUES) {
      const oldest = this.#cues.shift();
      if (oldest !== undefined) this.#track.removeCue(oldest);
    }
  }
}
