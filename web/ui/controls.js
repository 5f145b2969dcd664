/** The player's buttons, and its reactions to the pointer. */

import { t } from "../strings/strings.js";
import { byId, setIcon, setText } from "./dom.js";
import * as format from "./format.js";

/** The controls hide when the pointer has not moved for this long while the video plays. */
const REST_MILLISECONDS = 2800;
/** Step of the buttons for back and forward, in seconds. */
const BUTTON_STEP = 10;
/** Interval between updates of the distance to the edge: a number that changes faster cannot be read. */
const DISTANCE_MILLISECONDS = 500;

export class Controls {
  #video;
  #session;
  #root;
  #stage;
  #player;
  #play;
  #bigPlay;
  #mute;
  #volume;
  #unmute;
  #live;
  #distance;
  #back;
  #ahead;
  #pip;
  #fullscreen;
  #resting = 0;
  #distanceAt = -Infinity;
  /** Whether the viewer has muted, unmuted or set the volume. Until then the video shows an "Unmute" button. */
  #muteChosen = false;

  /**
   * @param {HTMLVideoElement} video
   * @param {import("../engine/session.js").WatchSession} session
   * @param {import("./dom.js").Root} root
   */
  constructor(video, session, root = document) {
    this.#video = video;
    this.#session = session;
    this.#root = root;
    this.#stage = byId("stage", HTMLElement, root);
    this.#player = byId("player", HTMLElement, root);
    this.#play = byId("play", HTMLButtonElement, root);
    this.#bigPlay = byId("big-play", HTMLButtonElement, root);
    this.#mute = byId("mute", HTMLButtonElement, root);
    this.#volume = byId("volume", HTMLInputElement, root);
    this.#unmute = byId("unmute", HTMLButtonElement, root);
    this.#live = byId("live", HTMLButtonElement, root);
    this.#distance = byId("distance", HTMLElement, root);
    this.#back = byId("back", HTMLButtonElement, root);
    this.#ahead = byId("ahead", HTMLButtonElement, root);
    this.#pip = byId("pip", HTMLButtonElement, root);
    this.#fullscreen = byId("fullscreen", HTMLButtonElement, root);
    video.muted = true;
    this.#play.addEventListener("click", () => this.togglePlay());
    this.#bigPlay.addEventListener("click", () => this.togglePlay());
    this.#mute.addEventListener("click", () => this.toggleMute());
    this.#unmute.addEventListener("click", () => this.toggleMute());
    this.#volume.addEventListener("input", () => this.#setVolume(Number(this.#volume.value)));
    this.#live.addEventListener("click", () => this.goLive());
    this.#back.addEventListener("click", () => this.step(-BUTTON_STEP));
    this.#ahead.addEventListener("click", () => this.step(BUTTON_STEP));
    this.#pip.addEventListener("click", () => this.togglePictureInPicture());
    this.#fullscreen.addEventListener("click", () => this.toggleFullScreen());
    this.#fullscreen.hidden = !document.fullscreenEnabled && !("webkitEnterFullscreen" in video);
    this.#followIntent();
    this.#listenToPointer();
    for (const event of ["play", "pause", "volumechange"]) video.addEventListener(event, () => this.refresh());
    document.addEventListener("fullscreenchange", () => this.refresh());
  }

  togglePlay() {
    const video = this.#video;
    if (video.paused) {
      this.#session.intent.plays = true;
      video.play().catch(() => this.refresh());
    } else {
      this.#session.intent.plays = false;
      video.pause();
    }
  }

  /**
   * Stores a pause that was made here, by a headset or by the system, so that playback does not restart with the next media.
   * A pause at the end of the media, after an error, without media or on a hidden page does not count.
   */
  #followIntent() {
    const video = this.#video, { intent } = this.#session;
    video.addEventListener("play", () => { if (!video.paused) intent.plays = true; });
    video.addEventListener("pause", () => {
      const byItself = video.ended || video.error || document.hidden;
      // While a video seeks, the media that it seeks to is still to come.
      const hasMedia = video.seeking || video.readyState > HTMLMediaElement.HAVE_METADATA;
      if (!byItself && hasMedia) intent.plays = false;
    });
  }

  toggleMute() {
    const video = this.#video;
    this.#muteChosen = true;
    video.muted = !video.muted;
    if (!video.muted && video.volume === 0) video.volume = 1;
    if (!video.muted && video.paused && this.#session.intent.plays) video.play().catch(() => {});
    this.refresh();
  }

  goLive() {
    this.#session.engine.goLive();
    if (this.#video.paused) this.togglePlay();
  }

  /** @param {number} seconds Forward, or back if negative. */
  step(seconds) {
    const { engine } = this.#session;
    if (seconds > 0 && engine.isFollowed) return;
    engine.seek(this.#video.currentTime + seconds);
    this.refresh();
  }

  /** Seeks to the oldest media. */
  goToStart() {
    const { engine } = this.#session;
    if (engine.range !== null) engine.seek(engine.range.start);
    this.refresh();
  }

  async toggleFullScreen() {
    try {
      if (this.#root.fullscreenElement) await document.exitFullscreen();
      else if (document.fullscreenEnabled) await this.#player.requestFullscreen();
      else /** @type {any} */ (this.#video).webkitEnterFullscreen?.();
    } catch {
      this.refresh();
    }
  }

  async togglePictureInPicture() {
    try {
      if (this.#root.pictureInPictureElement) await document.exitPictureInPicture();
      else if (document.pictureInPictureEnabled) await this.#video.requestPictureInPicture();
    } catch {
      this.refresh();
    }
  }

  /** Updates all controls. */
  refresh() {
    const video = this.#video, { stream, phase } = this.#session;
    const usable = phase === "playing" || phase === "waiting";
    setIcon(this.#play, video.paused ? "play" : "pause");
    this.#play.setAttribute("aria-label", t(video.paused ? "player.play" : "player.pause"));
    const hasFrame = video.readyState >= HTMLMediaElement.HAVE_CURRENT_DATA;
    this.#bigPlay.hidden = !(video.paused && phase === "playing" && hasFrame);
    const silent = video.muted || video.volume === 0;
    setIcon(this.#mute, silent ? "muted" : "volume");
    this.#mute.setAttribute("aria-label", t(silent ? "player.unmute" : "player.mute"));
    if (this.#root.activeElement !== this.#volume) this.#volume.value = String(silent ? 0 : video.volume);
    const hasAudio = Boolean(stream?.tracks.some((track) => track.kind === "audio"));
    this.#unmute.hidden = !(usable && hasAudio && video.muted && !this.#muteChosen && this.#bigPlay.hidden);
    // A stream that has ended can only be sought in, by the seek bar.
    const isOver = phase === "ended" || phase === "notStarted";
    const idle = isOver || (!usable && !this.#session.hasPlayed);
    for (const control of [this.#play, this.#mute, this.#volume]) control.hidden = idle;
    this.#pip.hidden = idle || !document.pictureInPictureEnabled;
    this.#live.hidden = !usable;
    const canSeek = usable && this.#session.engine.range !== null;
    this.#back.hidden = this.#ahead.hidden = !canSeek;
    this.#ahead.disabled = this.#session.engine.isFollowed;
    this.#showLive();
    const full = this.#root.fullscreenElement !== null;
    setIcon(this.#fullscreen, full ? "shrink" : "expand");
    this.#fullscreen.setAttribute("aria-label", t(full ? "player.exitFullScreen" : "player.fullScreen"));
  }

  /** Shows whether the playhead is at the live edge, and the distance to it. */
  #showLive() {
    const { engine, atLiveEdge } = this.#session;
    const changed = this.#live.dataset.edge !== (atLiveEdge ? "live" : "behind");
    this.#live.dataset.edge = atLiveEdge ? "live" : "behind";
    this.#live.setAttribute("aria-label", t(atLiveEdge ? "state.live" : "player.goLive"));
    const now = performance.now();
    if (!changed && now - this.#distanceAt < DISTANCE_MILLISECONDS) return;
    this.#distanceAt = now;
    const { behind } = engine;
    setText(this.#distance, behind < 60 ? `−${format.seconds(behind)}` : `−${format.duration(behind)}`);
  }

  /** @param {number} step */
  changeVolume(step) {
    this.#setVolume((this.#video.muted ? 0 : this.#video.volume) + step);
  }

  /** @param {number} volume 0 to 1. */
  #setVolume(volume) {
    this.#muteChosen = true;
    this.#video.volume = Math.min(1, Math.max(0, volume));
    this.#video.muted = this.#video.volume === 0;
  }

  #listenToPointer() {
    const wake = () => {
      this.#stage.classList.remove("resting");
      clearTimeout(this.#resting);
      this.#resting = setTimeout(() => this.#stage.classList.add("resting"), REST_MILLISECONDS);
    };
    for (const event of ["pointermove", "pointerdown", "focusin", "keydown"]) this.#stage.addEventListener(event, wake);
    wake();
    this.#video.addEventListener("click", (event) => {
      if (!this.#unmute.hidden) this.toggleMute();
      else if (/** @type {PointerEvent} */ (event).pointerType !== "touch") this.togglePlay();
    });
    this.#video.addEventListener("dblclick", () => this.toggleFullScreen());
  }
}
