/** One recording in the list of the home page. */

import { base } from "../media/root.js";
import { t } from "../strings/strings.js";
import { icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { isOwnFile } from "../ui/links.js";
import { playRecording } from "./play-recording.js";

/** States that are told. */
const TOLD = ["running", "failed", "cancelled"];

/** @returns {import("../pages/index.js").Card} */
export function recordingCard() {
  const title = make("h3", "recording-name");
  title.dir = "auto";
  const when = make("span", "recording-when");
  const figures = make("span", "recording-figures");
  const badge = make("span", "badge");
  const play = /** @type {HTMLButtonElement} */ (action("button", "play", t("recording.play")));
  const download = /** @type {HTMLAnchorElement} */ (action("a", "download", t("recording.download")));
  const watch = /** @type {HTMLAnchorElement} */ (action("a", "play", t("recording.watchLive")));
  const head = make("div", "recording-head", title, badge);
  const body = make("div", "recording-body", head, when, figures);
  const element = make("li", "recording", body, make("div", "recording-actions", watch, play, download));
  /** @type {import("../api/api.js").Recording | null} */
  let shown = null;
  play.type = "button";
  play.addEventListener("click", () => { if (shown) playRecording(shown); });

  return {
    element,
    /** @param {import("../api/api.js").Recording} recording */
    update(recording) {
      shown = recording;
      setText(title, recording.name ? t("recording.named", { name: recording.name, stream: recording.stream }) : recording.stream);
      setText(when, format.moment(recording.startedAt));
      setText(figures, `${format.duration(recording.seconds)} · ${format.size(recording.bytes)}`);
      const word = TOLD.includes(recording.state) ? t(`recorded.${recording.state}`) : "";
      badge.hidden = word === "";
      badge.dataset.state = recording.state === "running" ? "live" : recording.state;
      setText(badge, word);
      // A running recording has no end yet, so the link leads to the live stream.
      const whole = recording.state !== "running";
      play.hidden = download.hidden = !whole || !isOwnFile(recording.url);
      watch.hidden = whole;
      watch.href = `${base}/watch/${encodeURIComponent(recording.stream)}`;
      const label = `${recording.stream}, ${format.moment(recording.startedAt)}`;
      play.setAttribute("aria-label", t("recording.playOf", { recording: label }));
      download.setAttribute("aria-label", t("recording.downloadOf", { recording: label }));
      if (isOwnFile(recording.url)) download.href = recording.url;
      const isNamed = recording.file.startsWith(recording.stream);
      download.download = recording.name ? `${recording.name}.mp4` : isNamed ? recording.file : `${recording.stream}-${recording.file}`;
    },
  };
}

/** @param {string} tag @param {string} symbol A symbol of icons.svg. @param {string} word */
const action = (tag, symbol, word) => make(tag, "button quiet", icon(symbol), make("span", "", word));
