/**
 * The element <weir-player src="https://live.example.com/watch/NAME">: the player of a live stream on any page. docs/embedding.md
 * describes its attributes, properties, methods and events. Each element has its own session and its own tree.
 */

import { WatchSession } from "../engine/session.js";
import { AudioMenu } from "../ui/audio-menu.js";
import { CaptionsMenu } from "../ui/captions-menu.js";
import { Controls } from "../ui/controls.js";
import { announce, byId } from "../ui/dom.js";
import { listenToFocusedKeys } from "../ui/keys.js";
import { QualityMenu } from "../ui/quality-menu.js";
import { SeekBar } from "../ui/seek-bar.js";
import { Stage } from "../ui/stage.js";
import { streamAddress } from "./address.js";
import { loadAssets } from "./assets.js";
import { markup } from "./markup.js";

/** Events of the video that the element dispatches as its own. */
const MEDIA_EVENTS = ["play", "pause", "playing", "waiting", "timeupdate", "volumechange"];

/** Of six connections, more players than this would take all with requests that the server holds: a playlist and a part each. */
const HOLDING_PLAYERS = 2;

/** The players of this page that have begun. @type {Set<Playing>} */
const players = new Set();

/** @typedef {import("../engine/session.js").EngineName} EngineName */
/** @typedef {import("../engine/session.js").Phase | "idle"} PlayerPhase "idle": not begun yet. */

/** What there is of a player while its element is on a page. */
class Playing {
  /** @param {WeirPlayer} host @param {ShadowRoot} root @param {import("./address.js").StreamAddress} address */
  constructor(host, root, { root: server, name }) {
    this.host = host;
    this.root = root;
    this.name = name;
    this.server = server;
    this.video = byId("video", HTMLVideoElement, root);
    this.stage = new Stage(this.video, { root });
    const forced = host.getAttribute("engine");
    this.session = new WatchSession(
      this.video, name, forced === "mse" || forced === "hls" || forced === "native" ? forced : null,
      () => this.stage.keepLastFrame(), { root: server, prefersHLS: !isMultiplexed() });
    this.controls = new Controls(this.video, this.session, root);
    this.video.muted = host.hasAttribute("muted") || host.hasAttribute("autoplay");
    const captions = new CaptionsMenu(this.video, root);
    this.parts = [this.controls, new SeekBar(this.video, this.session, { root }), new QualityMenu(this.session, root), new AudioMenu(this.session, root)];
    listenToFocusedKeys(root, this.controls, captions);
    byId("page", HTMLAnchorElement, root).href = `${server}/watch/${encodeURIComponent(name)}`;
    byId("message-action", HTMLButtonElement, root).addEventListener("click", () => this.session.retry());
    for (const event of MEDIA_EVENTS) this.video.addEventListener(event, () => host.dispatchEvent(new Event(event)));
    this.session.addEventListener("tick", (event) => this.#refresh(/** @type {CustomEvent} */ (event).detail.changed));
    if (host.hasAttribute("autoplay")) this.begin();
    else this.#wait();
  }

  isBegun = false;

  /** Begins to play. Until then nothing is loaded but a picture. */
  begin() {
    if (this.isBegun) return;
    this.isBegun = true;
    byId("poster", HTMLImageElement, this.root).hidden = true;
    byId("begin", HTMLButtonElement, this.root).hidden = true;
    players.add(this);
    if (players.size > HOLDING_PLAYERS && !isMultiplexed()) for (const player of players) player.session.poll();
    this.session.start();
  }

  stop() {
    players.delete(this);
    this.session.stop();
    this.session.engine.detach();
  }

  #wait() {
    byId("stage", HTMLElement, this.root).dataset.phase = "idle";
    const picture = byId("poster", HTMLImageElement, this.root);
    picture.addEventListener("load", () => { picture.hidden = this.isBegun; });
    picture.src = this.host.getAttribute("poster") ?? `${this.server}/live/${encodeURIComponent(this.name)}/thumbnail.jpg`;
    const button = byId("begin", HTMLButtonElement, this.root);
    button.hidden = false;
    button.addEventListener("click", () => this.begin());
  }

  /** @param {boolean} changed */
  #refresh(changed) {
    const { session, stage, host } = this;
    if (changed) announce(stage.spoken(session, this.name), this.root);
    stage.refresh(session, changed);
    for (const part of this.parts) part.refresh();
    if (!changed) return;
    host.dispatchEvent(new CustomEvent("phasechange", { detail: { phase: session.phase } }));
    if (session.phase === "ended") host.dispatchEvent(new Event("ended"));
  }
}

export class WeirPlayer extends HTMLElement {
  static observedAttributes = ["src", "engine", "muted"];
  #root = this.attachShadow({ mode: "open" });
  /** @type {Playing | null} */
  #playing = null;
  /** Counts attempts to build the player, which end each other. */
  #turn = 0;
  /** Whether the page has told that the element is on it. An element that a page had before this script gets its attributes first. */
  #isPlaced = false;
  /** Whether `play` was called before the player was there. */
  #isAsked = false;

  connectedCallback() {
    this.#isPlaced = true;
    this.#build();
  }

  disconnectedCallback() {
    this.#isPlaced = false;
    this.#clear();
  }

  /** @param {string} name @param {string | null} before @param {string | null} now */
  attributeChangedCallback(name, before, now) {
    if (!this.#isPlaced || before === now) return;
    if (name === "muted") this.muted = now !== null;
    else this.#build();
  }

  /** The stream's page or player: `https://live.example.com/watch/NAME`. */
  get src() { return this.getAttribute("src") ?? ""; }
  set src(value) { this.setAttribute("src", value); }

  /** @type {PlayerPhase} */
  get phase() { return this.#playing?.isBegun ? this.#playing.session.phase : "idle"; }
  /** The state of the stream as the server tells it; null while it is unknown. */
  get stream() { return this.#playing?.session.stream ?? null; }
  /** The element that plays; null until the player has been built. */
  get video() { return this.#playing?.video ?? null; }
  get paused() { return this.#playing?.video.paused ?? true; }
  get muted() { return this.#playing?.video.muted ?? this.hasAttribute("muted"); }
  set muted(value) { if (this.#playing) this.#playing.video.muted = value; }
  /** 0 to 1. */
  get volume() { return this.#playing?.video.volume ?? 1; }
  set volume(value) { if (this.#playing) this.#playing.video.volume = value; }
  /** Seconds between what is shown and the newest media. */
  get behind() { return this.#playing?.session.engine.behind ?? 0; }
  get isLive() { return this.#playing?.session.atLiveEdge ?? false; }

  /** Begins, or goes on after a pause. Resolves when the browser plays, rejects if it does not allow it. */
  async play() {
    const playing = this.#playing;
    if (playing === null) {
      this.#isAsked = true;
      return;
    }
    playing.session.intent.plays = true;
    if (playing.isBegun) await playing.video.play();
    else playing.begin();
  }

  pause() {
    this.#isAsked = false;
    if (this.#playing === null) return;
    this.#playing.session.intent.plays = false;
    this.#playing.video.pause();
  }

  /** Goes to the newest media. */
  goLive() { if (this.#playing?.isBegun) this.#playing.controls.goLive(); }

  /** @param {number} seconds How far behind the newest media to go. */
  seekBehind(seconds) {
    const { range } = this.#playing?.session.engine ?? { range: null };
    if (range) this.#playing?.session.engine.seek(range.end - seconds);
  }

  async #build() {
    this.#clear();
    const turn = this.#turn;
    const address = streamAddress(this.src, document.baseURI);
    if (address === null) {
      const error = new Error("src is not the address of a stream's page: https://live.example.com/watch/NAME");
      this.dispatchEvent(new ErrorEvent("error", { message: error.message, error }));
      return;
    }
    try {
      const { styles, icons } = await loadAssets();
      if (turn !== this.#turn) return;
      const symbols = document.importNode(icons, true);
      for (const symbol of symbols.querySelectorAll("symbol")) symbol.id = `icon-${symbol.id}`;
      symbols.setAttribute("class", "icons");
      symbols.setAttribute("aria-hidden", "true");
      this.#root.adoptedStyleSheets = styles;
      this.#root.replaceChildren(symbols, ...markup(address.name));
    } catch (error) {
      if (turn === this.#turn) this.dispatchEvent(new ErrorEvent("error", { message: String(error), error }));
      return;
    }
    this.#playing = new Playing(this, this.#root, address);
    if (this.#isAsked) this.play();
    this.#isAsked = false;
  }

  #clear() {
    this.#turn += 1;
    this.#playing?.stop();
    this.#playing = null;
    this.#root.replaceChildren();
  }
}

/** Over HTTP/1.1 a browser has six connections to a host, and `stream.mp4` takes one for as long as it plays. */
function isMultiplexed() {
  const [entry] = /** @type {PerformanceResourceTiming[]} */ (performance.getEntriesByName(import.meta.url));
  return ["h2", "h3"].includes(entry?.nextHopProtocol ?? "");
}

if (!customElements.get("weir-player")) customElements.define("weir-player", WeirPlayer);
