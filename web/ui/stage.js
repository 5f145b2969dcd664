/** What a player shows instead of and beside the video: messages, the last frame, audio without video. */

import { codecName } from "../media/codecs.js";
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
  #advice;
  #phaseSince = performance.now();

  /**
   * @param {HTMLVideoElement} video
   * @param {{root?: import("./dom.js").Root, advice?: string}} options `advice`: what to do where the browser cannot play the
   *   stream.
   */
  constructor(video, { root = document, advice = "" } = {}) {
    this.#video = video;
    this.#advice = advice;
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
    this.#audioOnly.hidden = tracks.length === 0 || tracks.some((t) => t.kind !== "audio");
    if (phase === "playing") {
      this.#message.hidden = true;
      return;
    }
    if (phase === "waiting" && performance.now() - this.#phaseSince < MESSAGE_DELAY_MILLISECONDS) return;
    const [title, text] = this.#words(session);
    const canRetry = phase === "unreachable" || phase === "full";
    this.say(title, text, canRetry ? "Try now" : null, ["looking", "starting", "waiting", "reconnecting"].includes(phase));
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
    if (session.phase === "playing") return `${name} is live`;
    return session.phase === "looking" ? "" : this.#words(session)[0];
  }

  /** @param {WatchSession} session @returns {[string, string]} Title and explanation. */
  #words(session) {
    switch (session.phase) {
      case "looking": return ["Looking for the stream", ""];
      case "notStarted": return [
        "Not started yet",
        "Nothing is being published under this name. The stream plays here as soon as it starts.",
      ];
      case "starting": return ["Starting", "The publisher is connected. Waiting for the first frame."];
      case "waiting": return ["Buffering", ""];
      case "reconnecting": return [
        "Reconnecting",
        "The publisher or the network is interrupted. Playback resumes automatically.",
      ];
      case "ended": return ["The stream has ended", "If it starts again, it plays here automatically."];
      case "unplayable": return [
        `This browser cannot play ${session.unplayable.map(codecName).join(" and ")}`,
        `The stream is live in ${session.unplayable.join(", ")}. ${this.#advice}`,
      ];
      case "full": {
        const wait = Math.max(0, Math.ceil((session.retryAt - performance.now()) / 1000));
        return ["The server is full", wait > 0 ? `Next try in ${wait} s.` : "Trying again."];
      }
      case "unreachable": return ["The server cannot be reached", "Trying again."];
      default: return ["", ""];
    }
  }
}
