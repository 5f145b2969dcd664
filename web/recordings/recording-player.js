/** The player of a recording: its video, a seek bar with the time of day, and the keyboard shortcuts of the watch page. */

import { fetchKeyFrames } from "../api/api.js";
import { RecordingPlayback } from "../engine/recording-playback.js";
import { base } from "../media/root.js";
import { t } from "../strings/strings.js";
import { announce, icon, make, setIcon, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { isOwnFile } from "../ui/links.js";
import { SeekBar } from "../ui/seek-bar.js";
import { keepAwake } from "../ui/wake-lock.js";
import { ClipEditor } from "./clip-editor.js";
import { SeekPictures } from "./seek-pictures.js";

/** Seconds. */
const ARROW_STEP = 5;
const LETTER_STEP = 10;
const VOLUME_STEP = 0.1;
const SPEEDS = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

const WORDING = {
  // The media of a running recording may begin at any time.
  brief: (/** @type {number} */ time, /** @type {{start: number}} */ range) => format.duration(time - range.start),
  spoken: (/** @type {number} */ time, /** @type {{start: number, end: number}} */ range) =>
    t("player.of", { time: format.duration(time - range.start), length: format.duration(range.end - range.start) }),
};

export class RecordingPlayer {
  video = /** @type {HTMLVideoElement} */ (make("video"));
  #stage = make("div", "player-stage");
  #audioOnly = make("div", "player-audio-only", icon("audio"));
  #row = make("div", "seek-row");
  #play = control("play", t("player.play"), "k Space", t("player.playKeys"));
  #mute = control("volume", t("player.mute"), "m", t("player.muteKeys"));
  #volume = slider("player-volume", "volume", t("player.volume"));
  #place = make("span", "player-place");
  #fullscreen = control("expand", t("player.fullScreen"), "f", t("player.fullScreenKeys"));
  #playback = new RecordingPlayback(this.video);
  #pictures = new SeekPictures();
  #speed = /** @type {HTMLSelectElement} */ (make("select", "captions speed"));
  #clip;
  #clipButton = control("clip", t("clip.title"), "", t("clip.cut"));
  #seekBar;
  /** @type {import("../api/api.js").Recording | null} */
  #recording = null;

  /** @param {Element} place The element of the document that receives the player. */
  constructor(place) {
    this.video.id = "recording-video";
    this.video.playsInline = true;
    this.video.preload = "auto";
    keepAwake(this.video);
    this.#clip = new ClipEditor(this.#playback, this.video, this.#clipButton);
    place.append(this.#build(), this.#clip.element);
    this.#seekBar = new SeekBar(this.video, this.#playback, { wording: WORDING, shortest: 0, pictures: this.#pictures });
    this.#listen();
  }

  #build() {
    const seek = slider("seek", "seek", t("player.time"));
    seek.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Home End");
    seek.step = "any";
    const bubble = make("output", "seek-bubble");
    bubble.id = "seek-bubble";
    bubble.setAttribute("aria-live", "off");
    bubble.toggleAttribute("hidden", true);
    const position = make("time", "position");
    position.id = "position";
    position.setAttribute("title", t("player.whenLive"));
    this.#row.id = "seek-row";
    this.#row.append(seek, this.#pictures.element, bubble, ...this.#clip.marks);
    // Media run from left to right in every language.
    this.#row.dir = "ltr";
    this.#buildSpeed();
    this.#volume.step = "0.05";
    const back = control("back", t("player.back"), "j", t("player.backKeys"));
    const ahead = control("ahead", t("player.ahead"), "l", t("player.aheadKeys"));
    back.addEventListener("click", () => this.#step(-LETTER_STEP));
    ahead.addEventListener("click", () => this.#step(LETTER_STEP));
    back.classList.add("wide");
    ahead.classList.add("wide");
    const controls = make("div", "player-controls", this.#row,
      make("div", "buttons", this.#play, back, ahead, this.#mute, this.#volume, this.#place, position,
        make("span", "spacer"), this.#speed, this.#clipButton, this.#fullscreen));
    controls.setAttribute("role", "group");
    controls.setAttribute("aria-label", t("player.controls"));
    this.#audioOnly.toggleAttribute("hidden", true);
    this.#stage.append(make("div", "player-video", this.video, this.#audioOnly), controls);
    return this.#stage;
  }

  #buildSpeed() {
    this.#speed.id = "speed";
    this.#speed.title = t("player.speedKeys");
    this.#speed.setAttribute("aria-label", t("player.speed"));
    this.#speed.setAttribute("aria-keyshortcuts", "< >");
    this.#speed.append(...SPEEDS.map((speed) =>
      Object.assign(make("option", "", `${format.number(speed)}×`), { value: String(speed) })));
    this.#setSpeed(1);
    this.#speed.addEventListener("change", () => this.#setSpeed(Number(this.#speed.value)));
  }

  /** @param {number} speed It stays for the recordings that are opened next. */
  #setSpeed(speed) {
    this.#speed.value = String(speed);
    this.video.defaultPlaybackRate = this.video.playbackRate = speed;
  }

  /** @param {number} step To the next faster or slower one. */
  #changeSpeed(step) {
    const next = SPEEDS.indexOf(Number(this.#speed.value)) + step;
    if (next in SPEEDS) this.#setSpeed(SPEEDS[next]);
    announce(t("player.speedIs", { speed: format.number(Number(this.#speed.value)) }));
  }

  #listen() {
    const { video } = this;
    this.#play.addEventListener("click", () => this.#togglePlay());
    video.addEventListener("click", () => this.#togglePlay());
    video.addEventListener("dblclick", () => this.#toggleFullScreen());
    this.#mute.addEventListener("click", () => this.#toggleMute());
    this.#volume.addEventListener("input", () => this.#setVolume(Number(this.#volume.value)));
    this.#fullscreen.addEventListener("click", () => this.#toggleFullScreen());
    this.#fullscreen.hidden = !document.fullscreenEnabled;
    for (const event of ["play", "pause", "ended", "volumechange", "timeupdate", "durationchange", "seeking", "progress"]) {
      video.addEventListener(event, () => this.#refresh());
    }
    video.addEventListener("loadeddata", () => this.#audioOnly.toggleAttribute("hidden", video.videoWidth > 0));
    document.addEventListener("fullscreenchange", () => this.#refresh());
  }

  /** @param {import("../api/api.js").Recording} recording @param {number} at Seconds at which it begins to play. */
  load(recording, at = 0) {
    this.#recording = recording;
    this.#pictures.open(addressOf(recording), recording.state === "running" ? [] : recording.codecs);
    if (at > 0) {
      this.video.addEventListener("loadedmetadata", () => {
        if (this.#recording === recording) this.#playback.seek((this.#playback.range?.start ?? 0) + at);
      }, { once: true });
    }
    this.#playback.setClock([]);
    this.#audioOnly.toggleAttribute("hidden", true);
    this.#playback.leave();
    this.video.poster = isOwnFile(recording.thumbnail) ? recording.thumbnail ?? "" : "";
    const isRunning = recording.state === "running";
    if (isRunning) this.#playback.follow(playlistOf(recording));
    else this.video.src = isOwnFile(recording.url) ? recording.url ?? "" : "";
    this.#clip.open(recording);
    this.#clipButton.hidden = isRunning;
    this.#markGaps(isRunning ? [] : recording.gaps ?? [], recording.seconds);
    this.#refresh();
    if (!isRunning) this.#readClock(recording);
    this.video.play().catch(() => {});
  }

  unload() {
    this.#recording = null;
    this.#pictures.close();
    this.#clip.close();
    this.#playback.leave();
    this.video.removeAttribute("src");
    this.video.removeAttribute("poster");
    this.video.load();
  }

  /** @param {number} time Seconds of the recording. */
  seek(time) {
    this.#playback.seek(time);
  }

  /** @param {import("../api/api.js").Recording} recording */
  async #readClock(recording) {
    try {
      const { clock } = await fetchKeyFrames(recording);
      if (this.#recording === recording) this.#playback.setClock(clock);
    } catch {
      // The recording plays without the time of day.
    }
  }

  /** @param {import("../api/api.js").Gap[]} gaps @param {number} seconds */
  #markGaps(gaps, seconds) {
    for (const old of this.#row.querySelectorAll(".seek-gap")) old.remove();
    if (!(seconds > 0)) return;
    for (const gap of gaps) {
      const mark = make("span", "seek-gap");
      mark.setAttribute("aria-hidden", "true");
      mark.style.setProperty("--at", String(Math.min(1, Math.max(0, gap.at / seconds))));
      this.#row.append(mark);
    }
  }

  // MARK: Actions

  #togglePlay() {
    const { video } = this;
    if (video.paused) video.play().catch(() => this.#refresh());
    else video.pause();
  }

  /** @param {number} seconds */
  #step(seconds) {
    this.#playback.seek(this.video.currentTime + seconds);
  }

  #toggleMute() {
    const { video } = this;
    video.muted = !video.muted;
    if (!video.muted && video.volume === 0) video.volume = 1;
  }

  /** @param {number} volume 0 to 1. */
  #setVolume(volume) {
    this.video.volume = Math.min(1, Math.max(0, volume));
    this.video.muted = this.video.volume === 0;
  }

  #toggleFullScreen() {
    const change = document.fullscreenElement ? document.exitFullscreen() : this.#stage.requestFullscreen();
    change.catch(() => this.#refresh());
  }

  /** @param {KeyboardEvent} event A key event of the dialog. */
  key(event) {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = /** @type {Element} */ (event.target);
    const onSeekBar = target.id === "seek";
    if (target instanceof HTMLTextAreaElement || target instanceof HTMLInputElement && target.type === "text") return;
    const onOther = !onSeekBar && (target instanceof HTMLInputElement || target instanceof HTMLSelectElement);
    const isPressed = target instanceof HTMLButtonElement || target instanceof HTMLAnchorElement;
    switch (event.key) {
      case " ":
        if (isPressed || onOther || target.closest("summary")) return;
        this.#togglePlay();
        break;
      case "k": this.#togglePlay(); break;
      case "j": this.#step(-LETTER_STEP); break;
      case "l": this.#step(LETTER_STEP); break;
      case "m": this.#toggleMute(); break;
      case "f": this.#toggleFullScreen(); break;
      case "<": case ">": this.#changeSpeed(event.key === "<" ? -1 : 1); break;
      case "ArrowLeft": case "ArrowRight":
        if (onOther) return;
        this.#step(event.key === "ArrowLeft" ? -ARROW_STEP : ARROW_STEP);
        break;
      case "Home": case "End":
        if (onOther) return;
        this.#playback.seek((event.key === "Home" ? this.#playback.range?.start : this.#playback.range?.end) ?? 0);
        break;
      case "ArrowUp": case "ArrowDown":
        if (onOther) return;
        this.#setVolume((this.video.muted ? 0 : this.video.volume) + (event.key === "ArrowUp" ? VOLUME_STEP : -VOLUME_STEP));
        break;
      default: return;
    }
    event.preventDefault();
  }

  #refresh() {
    const { video } = this;
    setIcon(this.#play, video.paused ? "play" : "pause");
    this.#play.setAttribute("aria-label", t(video.paused ? "player.play" : "player.pause"));
    const silent = video.muted || video.volume === 0;
    setIcon(this.#mute, silent ? "muted" : "volume");
    this.#mute.setAttribute("aria-label", t(silent ? "player.unmute" : "player.mute"));
    if (document.activeElement !== this.#volume) this.#volume.value = String(silent ? 0 : video.volume);
    const full = document.fullscreenElement === this.#stage;
    setIcon(this.#fullscreen, full ? "shrink" : "expand");
    this.#fullscreen.setAttribute("aria-label", t(full ? "player.exitFullScreen" : "player.fullScreen"));
    const { start, end } = this.#playback.range ?? { start: 0, end: this.#recording?.seconds ?? 0 };
    setText(this.#place, `${format.duration(Math.max(0, video.currentTime - start))} / ${format.duration(end - start)}`);
    this.#seekBar.refresh();
    this.#clip.refresh();
  }
}

/** @param {import("../api/api.js").Recording} recording @returns {string} Its playlist, which exists while it is written, too. */
const playlistOf = (recording) => `${addressOf(recording)}/index.m3u8`;

/** @param {import("../api/api.js").Recording} recording */
const addressOf = ({ stream, file }) =>
  `${base}/recordings/${encodeURIComponent(stream)}/${encodeURIComponent(file.replace(/\.mp4$/, ""))}`;

/** @param {string} symbol @param {string} label @param {string} keys @param {string} title */
function control(symbol, label, keys, title) {
  const button = /** @type {HTMLButtonElement} */ (make("button", "control", icon(symbol)));
  button.type = "button";
  button.title = title;
  button.setAttribute("aria-label", label);
  if (keys !== "") button.setAttribute("aria-keyshortcuts", keys);
  return button;
}

/** @param {string} id @param {string} className @param {string} label */
function slider(id, className, label) {
  const input = /** @type {HTMLInputElement} */ (make("input", className));
  input.id = id;
  input.type = "range";
  input.min = "0";
  input.max = "1";
  input.setAttribute("aria-label", label);
  return input;
}
