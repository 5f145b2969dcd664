/** The details panel: what is played, its latency and its statistics. */

import { fetchOverview } from "../api/api.js";
import { codecName } from "../media/codecs.js";
import { many, t } from "../strings/strings.js";
import { byId, make, setText } from "./dom.js";
import * as format from "./format.js";

/** Update interval of the values. */
const REFRESH_MILLISECONDS = 500;
/** Interval between measurements of the server's clock while the panel is open. */
const CLOCK_MILLISECONDS = 30_000;
const CLOCK_RETRY_MILLISECONDS = 5000;

/** Time over which the received bit rate is measured; it spans several segments. */
const RATE_MILLISECONDS = 8000;

export class DetailsPanel {
  #video;
  #session;
  #clock;
  #panel = byId("details", HTMLElement);
  #button = byId("info", HTMLButtonElement);
  #figures = byId("figures", HTMLElement);
  /** @type {Map<string, Element>} The value elements by label. */
  #values = new Map();
  #refreshedAt = -Infinity;
  #clockAt = -Infinity;
  /** @type {{at: number, bytes: number}[]} Total of received bytes at some times. */
  #received = [];

  /**
   * @param {HTMLVideoElement} video
   * @param {import("../engine/session.js").WatchSession} session
   * @param {import("../api/api.js").ServerClock} clock
   * @param {import("../engine/session.js").EngineName | null} forced
   */
  constructor(video, session, clock, forced) {
    this.#video = video;
    this.#session = session;
    this.#clock = clock;
    this.#button.addEventListener("click", () => this.toggle());
    byId("details-close", HTMLButtonElement).addEventListener("click", () => {
      this.toggle();
      this.#button.focus();
    });
    this.#panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape") byId("details-close", HTMLButtonElement).click();
    });
    this.#offerLowestDelay();
    byId(`choose-${forced ?? "auto"}`, HTMLAnchorElement).setAttribute("aria-current", "true");
  }

  /** Opens or closes the panel. */
  toggle() {
    this.#panel.hidden = !this.#panel.hidden;
    this.#button.setAttribute("aria-expanded", String(!this.#panel.hidden));
    this.#refreshedAt = -Infinity;
    this.refresh();
  }

  /** Shows the way with the lowest delay where this browser and the server have it and the codecs can take it. */
  async #offerLowestDelay() {
    const { webRTCPort } = await fetchOverview().catch(() => ({ webRTCPort: null }));
    const tracks = this.#session.stream?.tracks ?? [];
    const fits = tracks.length > 0 && tracks.every(({ kind, codecString }) => kind === "audio" || /^(avc1|avc3|vp09|av01)/i.test(codecString));
    byId("choose-webrtc", HTMLAnchorElement).hidden = !webRTCPort || !fits || !("RTCPeerConnection" in globalThis);
  }

  refresh() {
    const now = performance.now();
    if (this.#panel.hidden || now - this.#refreshedAt < REFRESH_MILLISECONDS) return;
    this.#refreshedAt = now;
    if (now - this.#clockAt > CLOCK_MILLISECONDS) {
      this.#clockAt = now;
      this.#clock.measure().catch(() => { this.#clockAt = now - CLOCK_MILLISECONDS + CLOCK_RETRY_MILLISECONDS; });
    }
    for (const [label, value] of this.#read()) this.#show(label, value);
  }

  /** @returns {[string, string][]} */
  #read() {
    const video = this.#video, { engine, stream } = this.#session;
    const playing = this.#session.phase === "playing";
    const quality = video.getVideoPlaybackQuality?.();
    const serverNow = this.#clock.now();
    const latency = playing && stream && serverNow !== null ? engine.latency(stream, serverNow) : null;
    const codecs = engine.codecs.length > 0 ? engine.codecs : (stream?.tracks ?? []).map((track) => track.codecString);
    const size = video.videoWidth > 0 ? `${video.videoWidth}×${video.videoHeight}` : "–";
    const rate = stream?.tracks.find((track) => track.kind === "video")?.frameRate;
    return [
      [t("details.player"), ["native", "webrtc"].includes(engine.name) ? engine.source : t("details.mediaSource", { source: engine.source })],
      [t("details.codecs"), codecs.map((c) => `${codecName(c)} (${c})`).join(", ") || "–"],
      [t("details.video"), rate ? `${size}, ${format.frameRate(rate)}` : size],
      [t("details.latency"), latency === null ? t("details.unknown") : format.seconds(latency, 2)],
      [t("details.behind"), playing ? format.seconds(engine.behind, 2) : "–"],
      [t("details.window"), engine.range === null ? "–" : format.duration(engine.range.end - engine.range.start)],
      [t("details.buffer"), format.seconds(bufferAhead(video), 2)],
      [t("details.speed"), `${video.playbackRate.toFixed(2)}×`],
      [t("details.frames"), quality ? t("details.framesAre", { decoded: quality.totalVideoFrames, dropped: quality.droppedVideoFrames }) : "–"],
      [t("details.stalls"), String(engine.stalls)],
      [t("details.bitrate"), format.bitrate(stream?.bitrate)],
      [t("details.received"), format.bitrate(this.#receivedRate())],
      [t("details.keyFrames"), Number.isFinite(stream?.gopSeconds) ? t("details.every", { time: format.seconds(stream?.gopSeconds) }) : "–"],
      [t("details.publisher"), stream ? stream.protocol : "–"],
      ...connected(stream?.link ?? null),
      ...captured(stream?.capture ?? null),
      ...transcoded(stream?.ladder ?? null),
      [t("details.lastError"), this.#session.lastFailure || t("details.none")],
    ];
  }

  /** @returns {number | null} Bits per second of media over the last RATE_MILLISECONDS. */
  #receivedRate() {
    const { bytes } = this.#session.engine;
    if (bytes === null) return null;
    const now = performance.now();
    this.#received = this.#received.filter((r) => now - r.at < RATE_MILLISECONDS && r.bytes <= bytes);
    this.#received.push({ at: now, bytes });
    const first = this.#received[0];
    return now - first.at < 1000 ? null : (bytes - first.bytes) * 8000 / (now - first.at);
  }

  /** @param {string} label @param {string} value */
  #show(label, value) {
    let shown = this.#values.get(label);
    if (!shown) {
      shown = make("dd");
      this.#values.set(label, shown);
      this.#figures.append(make("div", "", make("dt", "", label), shown));
    }
    setText(shown, value);
  }
}

/**
 * The publisher's connection; empty where its protocol counts no packets.
 * @param {import("../api/api.js").Link | null} link
 * @returns {[string, string][]}
 */
function connected(link) {
  if (!link) return [];
  const text = t("details.connectionIs", {
    round: Math.round(link.rttMilliseconds), latency: link.latencyMilliseconds, lost: link.lostPackets,
    received: link.receivedPackets, again: link.retransmittedPackets, late: link.droppedPackets,
  });
  return [[t("details.connection"), text]];
}

/**
 * Losses in the server's own camera, microphone and encoder; empty for other publishers.
 * @param {import("../api/api.js").Capture | null} capture
 * @returns {[string, string][]}
 */
function captured(capture) {
  /** @type {[string, string][]} */
  const rows = [];
  const { video, audio } = capture ?? {};
  if (video) {
    const lost = video.lost + video.corrupt;
    rows.push([t("details.camera"), video.problem ?? [video.name || video.device, video.mode].filter(Boolean).join(", ")]);
    rows.push([t("details.encoder"), t("details.encoderIs", { name: video.encoder ?? t("details.inCamera"), dropped: video.dropped, lost })]);
  }
  if (audio) {
    rows.push([t("details.microphone"), audio.problem ?? many("details.overruns", audio.overruns, { device: audio.device })]);
  }
  return rows;
}

/**
 * State of the transcoder; empty without a ladder.
 * @param {import("../api/api.js").Ladder | null} ladder
 * @returns {[string, string][]}
 */
function transcoded(ladder) {
  if (!ladder) return [];
  const worker = t(`worker.${ladder.worker}`);
  const restarts = many("worker.restarts", ladder.restarts);
  return [
    [t("details.ladder"), ladder.renditions.map((rendition) => rendition.name).join(", ") || t("details.noneYet")],
    [t("details.transcoder"), many("worker.is", ladder.droppedFrames, { worker, restarts })],
  ];
}

/** @param {HTMLVideoElement} video @returns {number} Seconds of media from the playhead to the end of its range. */
function bufferAhead(video) {
  const { buffered, currentTime } = video;
  for (let n = 0; n < buffered.length; n += 1) {
    if (buffered.start(n) <= currentTime + 0.1 && currentTime <= buffered.end(n)) return buffered.end(n) - currentTime;
  }
  return 0;
}
