/** What is sent, by the browser's statistics, and what the server receives, by its counters. */

/**
 * @typedef {object} Sent Counters and states of a connection at one moment.
 * @property {number} at Milliseconds.
 * @property {number} bytes Of media.
 * @property {number} frames Of video.
 * @property {number} packets
 * @property {number} lost Packets that the server missed at first.
 * @property {number | null} width
 * @property {number | null} height
 * @property {number | null} roundTrip Seconds.
 * @property {string} limited What holds the quality back: "none", "cpu", "bandwidth" or "other".
 */

/**
 * @param {Iterable<any>} entries Of an RTCStatsReport.
 * @param {number} at Milliseconds.
 * @returns {Sent}
 */
export function sentOf(entries, at) {
  /** @type {Sent} */
  const sent = { at, bytes: 0, frames: 0, packets: 0, lost: 0, width: null, height: null, roundTrip: null, limited: "none" };
  for (const entry of entries) {
    if (entry.type === "outbound-rtp") {
      sent.bytes += entry.bytesSent ?? 0;
      sent.packets += entry.packetsSent ?? 0;
      if (entry.kind !== "video") continue;
      sent.frames += entry.framesSent ?? entry.framesEncoded ?? 0;
      sent.width = entry.frameWidth ?? null;
      sent.height = entry.frameHeight ?? null;
      sent.limited = entry.qualityLimitationReason ?? "none";
    } else if (entry.type === "remote-inbound-rtp") {
      sent.lost += Math.max(0, entry.packetsLost ?? 0);
      if (entry.kind === "video") sent.roundTrip ??= entry.roundTripTime ?? null;
    } else if (entry.type === "candidate-pair" && entry.nominated) {
      // The connection's own is newer than that of reports.
      sent.roundTrip = entry.currentRoundTripTime ?? sent.roundTrip;
    }
  }
  return sent;
}

/** @param {Iterable<any>} entries Of an RTCStatsReport. @returns {number} Bytes that came from the server. */
export function heardOf(entries) {
  let bytes = 0;
  for (const entry of entries) if (entry.type === "candidate-pair") bytes += entry.bytesReceived ?? 0;
  return bytes;
}

/**
 * @param {Sent} before @param {Sent} now
 * @returns {{bitrate: number, frameRate: number, loss: number} | null} Bits and frames per second, and the share of packets
 *   that were lost; null where the counters began anew, with another connection.
 */
export function between(before, now) {
  const seconds = (now.at - before.at) / 1000, packets = now.packets - before.packets;
  if (seconds <= 0 || now.bytes < before.bytes || packets < 0) return null;
  const lost = Math.max(0, now.lost - before.lost);
  return {
    bitrate: (now.bytes - before.bytes) * 8 / seconds,
    frameRate: Math.max(0, now.frames - before.frames) / seconds,
    loss: lost === 0 ? 0 : Math.min(1, lost / Math.max(packets, lost)),
  };
}

/** Frames below this share of those wanted, so many seconds one after the other, are too few. */
const FEW = 0.7;
const SLOW_SAMPLES = 3;

/** Whether a machine is too slow for what it sends. */
export class Slowness {
  #low = 0;

  /**
   * @param {number} frameRate Sent.
   * @param {number | null} wanted Null where few frames say nothing: a screen has one for each change.
   * @param {string} limited What holds the quality back. A slow network is no slow machine.
   * @returns {boolean} Whether that has been so for a while.
   */
  add(frameRate, wanted, limited) {
    const isLow = wanted !== null && limited !== "bandwidth" && frameRate < FEW * wanted;
    this.#low = isLow ? this.#low + 1 : 0;
    return this.#low >= SLOW_SAMPLES;
  }
}

/** @typedef {{videoFrames: number, keyFrames: number, lostVideoFrames: number, lostAudioFrames: number}} Received */

const RATE_MILLISECONDS = 5000;
const KEY_FRAMES_MILLISECONDS = 20_000;

/** Rates of what the server receives, from its counters at several moments. */
export class ServerView {
  /** @type {{at: number, received: Received}[]} Oldest first. */
  #samples = [];
  #lost = 0;

  /** @param {number} at Milliseconds. @param {Received} received */
  add(at, received) {
    const last = this.#samples.at(-1);
    // A stream that was forgotten meanwhile counts from zero.
    if (last !== undefined && received.videoFrames < last.received.videoFrames) this.#samples = [];
    else if (last !== undefined) {
      this.#lost += Math.max(0, received.lostVideoFrames + received.lostAudioFrames -
        last.received.lostVideoFrames - last.received.lostAudioFrames);
    }
    this.#samples.push({ at, received });
    const oldest = at - KEY_FRAMES_MILLISECONDS;
    while (this.#samples.length > 2 && this.#samples[1].at <= oldest) this.#samples.shift();
  }

  /** @returns {{frameRate: number, keyFrameSeconds: number | null, lost: number} | null} Null before the second sample. */
  get figures() {
    const last = this.#samples.at(-1), first = this.#samples[0];
    if (last === undefined || last === first) return null;
    const recent = this.#samples.findLast((sample) => last.at - sample.at >= RATE_MILLISECONDS) ?? first;
    const keyFrames = last.received.keyFrames - first.received.keyFrames;
    return {
      frameRate: (last.received.videoFrames - recent.received.videoFrames) * 1000 / (last.at - recent.at),
      keyFrameSeconds: keyFrames > 0 ? (last.at - first.at) / 1000 / keyFrames : null,
      lost: this.#lost,
    };
  }
}
