/** What a player shows instead of and beside the video: messages, the last frame, audio without video. */

import { codecName } from "../media/codecs.js";
import { locale, t } from "../strings/strings.js";
import { byId, setText } from "./dom.js";

/** A shorter wait shows no message: it could not be read. */
const MESSAGE_DELAY_MILLISECONDS = 700;

/** @typedef {import("../engine/session.js").WatchSession} WatchSession */

export class Stage {
  #video;
  #stage;
  #lastFrame;
  #message;
  #title;
  #text;
  #action;
  #spinner;
  #audioOnly;
  #phaseSince = performance.now();

  /**
   * @param {HTMLVideoElement} video
   * @param {{root?: import("./dom.js").Root}} options
   */
  constructor(video, { root = document } = {}) {
    this.#video = video;
    this.#stage = byId("stage", HTMLElement, root);
    this.#lastFrame = byId("last-frame", HTMLCanvasElement, root);
    this.#message = byId("message", HTMLElement, root);
    this.#title = byId("message-title", HTMLElement, root);
    this.#text = byId("message-text", HTMLElement, root);
    this.#action = byId("message-action", HTMLButtonElement, root);
    this.#spinner = byId("spinner", HTMLElement, root);
    this.#audioOnly = byId("audio-only", HTMLElement, root);
    for (const event of ["playing", "loadeddata"]) video.addEventListener(event, () => { this.#lastFrame.hidden = true; });
  }

  /** Keeps the last frame on the screen while the video element is reset. */
  keepLastFrame() {
    const video = this.#video, frame = this.#lastFrame;
    if (video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA || video.videoWidth === 0) return;
    frame.width = video.videoWidth;
    frame.height = video.videoHeight;
    frame.getContext("2d")?.drawImage(video, 0, 0);
    frame.hidden = false;
  }

  /** Gives the stage the aspect ratio of the video, so that the layout does not jump and no bars appear. */
  fit() {
    const { videoWidth, videoHeight } = this.#video;
    if (videoWidth > 0) this.#stage.style.setProperty("--shape", String(videoWidth / videoHeight));
  }

  /** @param {WatchSession} session @param {boolean} changed Whether the phase has changed. */
  refresh(session, changed) {
    const { phase, stream } = session;
    if (changed) this.#phaseSince = performance.now();
    this.#stage.dataset.phase = phase;
    const tracks = stream?.tracks ?? [];
    this.#audioOnly.hidden = tracks.length === 0 || tracks.some((track) => track.kind !== "audio");
    if (phase === "playing") {
      this.#message.hidden = true;
      return;
    }
    if (phase === "waiting" && performance.now() - this.#phaseSince < MESSAGE_DELAY_MILLISECONDS) return;
    const [title, text] = this.#words(session);
    const canRetry = phase === "unreachable" || phase === "full";
    this.say(title, text, canRetry ? t("watch.tryNow") : null, ["looking", "starting", "waiting", "reconnecting", "offAir"].includes(phase));
  }

  /** @param {string} title @param {string} text @param {string | null} action @param {boolean} busy */
  say(title, text, action = null, busy = false) {
    this.#message.hidden = false;
    setText(this.#title, title);
    setText(this.#text, text);
    this.#action.hidden = action === null;
    if (action !== null) setText(this.#action, action);
    this.#spinner.hidden = !busy;
  }

  /** @param {WatchSession} session @param {string} name @returns {string} The new phase, for screen readers. */
  spoken(session, name) {
    if (session.phase === "playing") return t("announce.isLive", { name });
    return session.phase === "looking" ? "" : this.#words(session)[0];
  }

  /** @param {WatchSession} session @returns {[string, string]} Title and explanation. */
  #words(session) {
    switch (session.phase) {
      case "looking": case "waiting": return [t(`phase.${session.phase}`), ""];
      case "notStarted": case "starting": case "reconnecting": case "offAir": case "ended":
        return [t(`phase.${session.phase}`), t(`phase.${session.phase}Text`)];
      case "unplayable": return [
        t("phase.unplayable", { codecs: listed(session.unplayable.map(codecName)) }),
        t("phase.unplayableText", { codecs: session.unplayable.join(", ") }),
      ];
      case "full": {
        const wait = Math.max(0, Math.ceil((session.retryAt - performance.now()) / 1000));
        return [t("phase.full"), wait > 0 ? t("phase.nextTry", { seconds: wait }) : t("phase.trying")];
      }
      case "unreachable": return [t("phase.unreachable"), t("phase.trying")];
      default: return ["", ""];
    }
  }
}

/** @param {string[]} names @returns {string} "H.264, AAC and Opus" */
const listed = (names) => new Intl.ListFormat(locale).format(names);
