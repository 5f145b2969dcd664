/**
 * One viewer's session with one stream. It polls the server for the state of the stream, chooses an engine, retries after
 * failures, and reports one phase for the page to show.
 */

import { fetchStream, isStateEarly } from "../api/api.js";
import { unplayable, MediaSourceClass } from "../media/codecs.js";
import { base } from "../media/root.js";
import { MSEEngine } from "./mse-engine.js";
import { NativeEngine } from "./native-engine.js";

/**
 * @typedef {"looking" | "notStarted" | "starting" | "playing" | "waiting" | "reconnecting" | "offAir" | "ended" | "unplayable" |
 *   "full" | "unreachable"} Phase
 */

/** @typedef {import("./engine.js").Engine} Engine */
/** @typedef {Engine["name"]} EngineName */

const ASK_MILLISECONDS = 2000;
/** The same while the stream is awaited. The server holds these requests, so that its first picture is not. */
const AWAIT_MILLISECONDS = 1000;
/** A page that waits for longer asks as one that plays. */
const AWAITED_MILLISECONDS = 120_000;
/** Polling interval of a hidden page. */
const ASK_HIDDEN_MILLISECONDS = 15_000;
const TICK_MILLISECONDS = 250;
const FIRST_RETRY = 250;
const LAST_RETRY = 8000;
/** After playing this long, the next failure counts as the first. */
const GOOD_MILLISECONDS = 5000;
/** Number of failures in a row after which native playback is replaced by Media Source Extensions. */
const NATIVE_TRIES = 3;
/** Number of failures in a row after which WebRTC is left for another way. */
const WEBRTC_TRIES = 2;
/** Number of losses within this time after which it is left, however long each connection held. */
const WEBRTC_LOSSES = 3;
const WEBRTC_LOSSES_MILLISECONDS = 60_000;
/** Beside other players a request that takes longer has waited in the browser for a connection. */
const QUEUED_MILLISECONDS = 1000;
/** A full server refuses a viewer within this time. */
const ADMITTED_MILLISECONDS = 2000;
/** The video counts as playing if its position has changed within this time. */
const MOVING_MILLISECONDS = 1200;

export class WatchSession extends EventTarget {
  /** @type {Phase} */
  phase = "looking";
  /** @type {import("../api/api.js").Stream | null} */
  stream = null;
  /** @type {string[]} Codec strings that this browser cannot play. */
  unplayable = [];
  /** Time of the next attempt, in milliseconds as performance.now(). */
  retryAt = 0;
  /** @type {string} Why the last connection ended, for the details panel. */
  lastFailure = "";
  /** What the viewer wants. The video element follows it as soon as it can. */
  intent = { plays: true };
  /** Whether any video or audio has played. */
  hasPlayed = false;
  /** @type {string | null} Why the lowest delay that was asked for is not possible here; null while it is, or was not asked for. */
  fallback = null;
  /** Why the server ended its last connection, in its own words; empty if it did not. */
  fallbackEnding = "";
  /** @type {Engine} */
  engine;
  #video;
  #name;
  #beforeReset;
  #root;
  #prefersHLS;
  #forced;
  #engines;
  /** Whether WebRTC is to be tried. */
  #wantsWebRTC;
  #stopped = new AbortController();
  /** Whether the server responded to the last request. */
  #isAnswered = true;
  #asked = false;
  #askedAt = -Infinity;
  /** When the wait for the stream began; Infinity while there is none. */
  #awaitedSince = Infinity;
  #connected = false;
  #full = false;
  #triedAt = -Infinity;
  #movedAt = -Infinity;
  #lastTime = 0;
  /** @type {Set<{until: "response" | "request", wake: () => void}>} Sleeps that have not ended. */
  #sleeps = new Set();

  /**
   * @param {HTMLVideoElement} video
   * @param {string} name Name of the stream.
   * @param {EngineName | null} forced "webrtc" gives way to another engine where it does not play.
   * @param {() => void} beforeReset Called before the element is reset, while its last frame can still be read.
   * @param {{root?: string, prefersHLS?: boolean}} place `root`: what the addresses of the stream's server begin with.
   *   `prefersHLS`: whether endless responses would take the browser's few connections to the server.
   */
  constructor(video, name, forced, beforeReset, { root = base, prefersHLS = false } = {}) {
    super();
    this.#video = video;
    this.#name = name;
    this.#beforeReset = beforeReset;
    this.#root = root;
    this.#prefersHLS = prefersHLS;
    this.#wantsWebRTC = forced === "webrtc";
    this.#forced = forced === "webrtc" ? null : forced;
    const live = `${root}/live/${encodeURIComponent(name)}`;
    const urls = { mp4: `${live}/stream.mp4`, hls: `${live}/index.m3u8` };
    /** @type {Record<string, Engine>} */
    const engines = {
      native: new NativeEngine(video, urls.hls, this.intent, beforeReset),
      mse: new MSEEngine(video, urls, this.intent, beforeReset, "mse"),
      hls: new MSEEngine(video, urls, this.intent, beforeReset, "hls"),
    };
    this.#engines = engines;
    for (const engine of Object.values(engines)) engine.onPlayRequest = () => this.#wake("request");
    this.engine = this.#engines[this.#forced ?? (NativeEngine.isPreferred() ? "native" : prefersHLS ? "hls" : "mse")];
  }

  start() {
    const { signal } = this.#stopped;
    const ticks = setInterval(() => this.#tick(), TICK_MILLISECONDS);
    signal.addEventListener("abort", () => clearInterval(ticks));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.retry(); }, { signal });
    addEventListener("online", () => this.retry(), { signal });
    this.#video.addEventListener("play", () => this.#wake(), { signal });
    this.#pollForever();
    this.#playForever();
  }

  /** Holds no request from now on: there are more players than the browser has connections to the server. */
  poll() { /** @type {MSEEngine} */ (this.#engines.hls).poll(); }

  /** Retries at once. */
  async retry() {
    await this.#ask();
    this.#wake("request");
  }

  /** Ends all requests, timers and listeners: the page is left, or the player is removed from it. */
  stop() {
    this.#stopped.abort();
    this.#wake("request");
  }

  get atLiveEdge() {
    return !this.#video.paused && this.engine.isFollowed && this.engine.behind <= this.engine.liveTolerance;
  }

  async #pollForever() {
    while (!this.#stopped.signal.aborted) {
      await this.#ask();
      await this.#sleep(document.hidden ? ASK_HIDDEN_MILLISECONDS : this.#pause, "request");
    }
  }

  /** Milliseconds until the next request for the state. */
  get #pause() {
    if (!["notStarted", "starting", "ended"].includes(this.phase)) {
      this.#awaitedSince = Infinity;
      return ["playing", "unplayable"].includes(this.phase) ? ASK_MILLISECONDS : ASK_MILLISECONDS / 2;
    }
    const now = performance.now();
    this.#awaitedSince = Math.min(this.#awaitedSince, now);
    const pause = now - this.#awaitedSince < AWAITED_MILLISECONDS ? AWAIT_MILLISECONDS : ASK_MILLISECONDS;
    return Math.max(0, pause - (now - this.#askedAt));
  }

  /**
   * What the next request for the state waits for. Beside other players none is held: they would take the browser's few connections.
   * @returns {"now" | "starting" | "live"}
   */
  get #goal() {
    const awaited = performance.now() - this.#awaitedSince;
    if (awaited < 0 || awaited >= AWAITED_MILLISECONDS || this.#prefersHLS || document.hidden) return "now";
    // `stream.mp4` has the first frames before there are playlists.
    const hasTracks = this.stream?.state === "starting" && this.stream.tracks.length > 0;
    return this.engine.name === "mse" && !hasTracks ? "starting" : "live";
  }

  async #ask() {
    const asked = performance.now();
    // The page has asked while it loaded: the first request that is held follows at once.
    this.#askedAt = isStateEarly(this.#name, this.#root) ? -Infinity : asked;
    try {
      this.stream = await fetchStream(this.#name, this.#root, this.#goal);
      if (this.#prefersHLS && performance.now() - asked > QUEUED_MILLISECONDS) this.poll();
      this.#isAnswered = true;
    } catch {
      this.#isAnswered = false;
    }
    if (this.#stopped.signal.aborted) return;
    this.#asked = true;
    this.#tick();
    this.#wake();
  }

  async #playForever() {
    let failures = 0;
    /** @type {number[]} When a connection by WebRTC was lost: a network that is too slow for it carries it for a while. */
    let losses = [];
    const { signal } = this.#stopped;
    if (this.#wantsWebRTC) await this.#loadWebRTC();
    while (!signal.aborted) {
      const stream = this.stream;
      const isOver = stream?.state === "ended" && !this.engine.playsFromWindow;
      // `stream.mp4` has the first frames before there are playlists.
      const isEarly = stream?.state === "starting";
      if (stream === null || isOver || isEarly && stream.tracks.length === 0 || !this.#choose(stream)
          || isEarly && this.engine.name !== "mse") {
        await this.#sleep(ASK_MILLISECONDS);
        continue;
      }
      const began = performance.now();
      this.#connected = true;
      this.#triedAt = began;
      const result = await this.engine.play(stream.startedAt, signal);
      this.#connected = false;
      this.#full = result.isFull === true;
      this.lastFailure = describe(result);
      failures = performance.now() - began > GOOD_MILLISECONDS ? 0 : failures + 1;
      if (result.kind === "stopped") return;
      if (result.kind === "tooShort") {
        // Media Source Extensions can play a stream that has only just begun.
        this.#giveUpEngine(result);
        if (this.engine.name === "native") await this.#sleep(ASK_MILLISECONDS, "request");
        failures = 0;
        continue;
      }
      if (result.kind === "paused") {
        while (this.#video.paused && !signal.aborted) await this.#sleep(ASK_MILLISECONDS);
        failures = 0;
        continue;
      }
      const isWebRTC = this.engine.name === "webrtc";
      if (isWebRTC && result.kind === "lost") {
        losses = [...losses.filter((at) => began - at < WEBRTC_LOSSES_MILLISECONDS), began];
      }
      if (!isWebRTC && (result.kind === "unplayable" || failures >= NATIVE_TRIES)) this.#giveUpEngine(result);
      await this.#ask();
      if (this.stream?.state === "ended") {
        await this.engine.drain(signal);
        continue;
      }
      const isRefused = result.kind === "refused" && result.isFull !== true && this.stream?.state === "live";
      const isLost = failures >= WEBRTC_TRIES || losses.length >= WEBRTC_LOSSES && this.stream?.state === "live";
      if (isWebRTC && (result.kind === "unplayable" || isRefused || isLost)) {
        this.#leaveWebRTC(result.reason === "path" || result.kind !== "lost" ? result.reason ?? "refused" : "lost", result.ending);
        failures = 0;
        continue;
      }
      // A response that ended normally (parameters changed) is followed by the next one at once.
      let pause = result.kind === "finished" && failures === 0 ? 0 : backOff(failures);
      if (this.#full) pause = Math.max(pause, 1000 * (result.retryAfter || 2));
      this.retryAt = performance.now() + pause;
      await this.#sleep(pause, "request");
      while ((this.stream?.state === "reconnecting" || this.stream?.state === "offAir") && !signal.aborted && !this.engine.playsFromWindow) {
        await this.#sleep(ASK_MILLISECONDS);
      }
    }
  }

  /** Loads the engine that few viewers need. */
  async #loadWebRTC() {
    try {
      const { WebRTCEngine } = await import("./webrtc-engine.js");
      if (!WebRTCEngine.supported()) return this.#leaveWebRTC("browser");
      const url = `${this.#root}/whep/${encodeURIComponent(this.#name)}`;
      this.#engines.webrtc = new WebRTCEngine(this.#video, url, this.intent, this.#beforeReset);
    } catch {
      this.#leaveWebRTC("lost");
    }
  }

  /** @param {string} reason @param {string} ending */
  #leaveWebRTC(reason, ending = "") {
    this.#wantsWebRTC = false;
    this.fallback = reason;
    this.fallbackEnding = ending;
    if (this.engine.name === "webrtc") this.#use(this.#prefersHLS ? "hls" : "mse");
  }

  /**
   * Chooses an engine for the tracks that the server reports. Returns whether one can play them.
   * @param {import("../api/api.js").Stream} stream
   */
  #choose(stream) {
    if (this.#wantsWebRTC && this.#engines.webrtc) {
      this.#use("webrtc");
      this.unplayable = [];
      return true;
    }
    // Played first are the first video and the first audio track, and what the server transcodes from them.
    let isReplaced = false;
    const shown = stream.tracks.filter((t) => stream.tracks.find((first) => first.kind === t.kind) === t);
    const codecs = shown.map((t) => {
      if (unplayable([t.codecString]).length === 0) return t.codecString;
      const made = t.kind === "audio" ? [stream.audio?.codecString] : (stream.ladder?.renditions ?? []).map((r) => r.codecString);
      const other = made.find((codec) => codec && unplayable([codec]).length === 0);
      if (!other) return t.codecString;
      isReplaced = true;
      return other;
    }).filter(Boolean);
    // Several qualities or tracks, or audio in another codec, are available by HLS only.
    const needsHLS = stream.ladder || isReplaced || shown.length < stream.tracks.length;
    const own = needsHLS || this.#prefersHLS || stream.player === "hls" ? "hls" : "mse";
    /** @type {EngineName[]} */
    const order = this.#forced ? [this.#forced] : this.engine.name === "native" ? ["native", own] : [own, "native"];
    /** @type {string[]} */
    let missing = [];
    for (const name of order) {
      if (name !== "native" && MediaSourceClass === null && order.length > 1) continue;
      if (name === "native" && !this.#forced && !NativeEngine.supported()) continue;
      missing = name === "native" ? NativeEngine.unplayable(codecs) : unplayable(codecs);
      if (missing.length > 0) continue;
      this.#use(name);
      this.unplayable = [];
      return true;
    }
    this.unplayable = missing;
    return false;
  }

  /** @param {EngineName} name */
  #use(name) {
    if (this.engine.name === name) return;
    this.engine.detach();
    this.engine = this.#engines[name];
  }

  /** @param {import("../media/playback-result.js").PlaybackResult} result */
  #giveUpEngine(result) {
    if (this.engine.name === "native" && this.#forced === null && MediaSourceClass !== null) {
      this.#use("mse");
    } else if (result.codecs?.length) {
      this.unplayable = result.codecs;
    }
  }

  #tick() {
    const now = performance.now();
    this.engine.tick();
    this.#startPlaying();
    if (this.#video.currentTime !== this.#lastTime) {
      if (this.#video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA) {
        this.#movedAt = now;
        this.hasPlayed = true;
        // While a refused viewer plays the rest of the buffer, the server may still be full.
        if (this.#connected) this.#full = false;
      }
      this.#lastTime = this.#video.currentTime;
    }
    const phase = this.#currentPhase(now - this.#movedAt < MOVING_MILLISECONDS);
    const changed = phase !== this.phase;
    this.phase = phase;
    this.dispatchEvent(new CustomEvent("tick", { detail: { changed } }));
  }

  /**
   * Starts playback. The attribute "autoplay" is not used. It waits for more media than a live stream has ahead, and it
   * pauses a video that is scrolled out of view. If the browser refuses, the page shows a play button.
   */
  #startPlaying() {
    const video = this.#video;
    if (!this.intent.plays || !video.paused || video.ended) return;
    if (video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA) return;
    video.play().catch((error) => {
      if (error?.name === "NotAllowedError") this.intent.plays = false;
    });
  }

  /** @param {boolean} moving @returns {Phase} */
  #currentPhase(moving) {
    const ready = this.#video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
    if (moving || (this.#connected && ready && this.#video.paused && !this.intent.plays)) return "playing";
    if (!this.#asked) return "looking";
    if (!this.#isAnswered) return "unreachable";
    if (this.stream === null) return "notStarted";
    switch (this.stream.state) {
      case "ended": return "ended";
      case "starting": return "starting";
      case "reconnecting": case "offAir": return this.stream.state;
      default:
        // An attempt that was not refused within this time has been admitted.
        if (this.#full && !(this.#connected && performance.now() > this.#triedAt + ADMITTED_MILLISECONDS)) return "full";
        if (this.unplayable.length > 0) return "unplayable";
        return this.hasPlayed ? (this.#connected ? "waiting" : "reconnecting") : "starting";
    }
  }

  /**
   * @param {number} milliseconds
   * @param {"response" | "request"} until What ends the sleep early: any response of the server, or only a request by the
   *   viewer.
   * @returns {Promise<void>}
   */
  #sleep(milliseconds, until = "response") {
    return new Promise((resume) => {
      const wake = () => {
        clearTimeout(timer);
        this.#sleeps.delete(sleep);
        resume();
      };
      const sleep = { until, wake };
      const timer = setTimeout(wake, milliseconds);
      this.#sleeps.add(sleep);
    });
  }

  /** @param {"response" | "request"} cause A request ends all sleeps. */
  #wake(cause = "response") {
    for (const { until, wake } of this.#sleeps) if (cause === "request" || until === "response") wake();
  }
}

/**
 * @param {number} failures Failures in a row.
 * @returns {number} Milliseconds: doubled with each failure, and randomised so that viewers do not all return at the
 *   same time.
 */
function backOff(failures) {
  return Math.min(LAST_RETRY, FIRST_RETRY * 2 ** failures) * (0.75 + Math.random() / 2);
}

/** @param {import("../media/playback-result.js").PlaybackResult} result */
function describe(result) {
  switch (result.kind) {
    case "finished": return "the server ended the response";
    case "newEpoch": return "the stream has restarted";
    case "refused": return `the server responded with status ${result.status}`;
    case "unplayable": return result.reason || "the browser cannot play this";
    case "lost": return result.ending || result.reason || "the connection was lost";
    default: return "";
  }
}
