/** One stream in the list of the home page: its live picture, what it is, and for operators how it is published. */

import { base } from "../media/root.js";
import { many, t } from "../strings/strings.js";
import { icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";

const HUES = 6;
/** Kinds of publishers that have words. The others are named by their protocol. */
const KINDS = ["test", "file", "capture"];

/** @param {string} name Name of the stream. */
export function streamCard(name) {
  const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", "stream-picture"));
  const symbol = icon("play");
  const badge = make("span", "badge");
  const recording = make("span", "badge operators", t("state.recording"));
  const tile = make("span", "stream-tile", symbol, canvas, make("span", "stream-badges", badge, recording));
  const title = make("bdi");
  const link = /** @type {HTMLAnchorElement} */ (make("a", "stream-link", title));
  const ownName = make("bdi", "stream-name operators");
  const description = make("p", "stream-description");
  const figures = make("p", "stream-figures");
  const tracks = make("p", "stream-tracks operators");
  const warnings = make("ul", "warnings operators");
  const body = make("div", "stream-body", make("h3", "", link), ownName, description, figures, tracks, warnings);
  const element = make("li", "stream panel", tile, body);
  canvas.hidden = true;
  canvas.setAttribute("aria-hidden", "true");
  tile.dataset.hue = String(hueOf(name));
  recording.dataset.state = "live";
  description.dir = "auto";
  link.href = `${base}/watch/${encodeURIComponent(name)}`;
  let warned = "";

  return {
    element,
    /** @type {import("./live-pictures.js").Picture} */
    picture: { canvas, name, at: -Infinity, tag: null },
    /** Whether it may show something old. */
    isStale: false,
    /** @param {import("../api/api.js").Stream} stream @param {boolean} operates Whether the tools of operators are shown. */
    update(stream, operates) {
      setText(title, stream.title || name);
      ownName.hidden = !stream.title;
      setText(ownName, name);
      element.dataset.state = stream.state;
      badge.dataset.state = stream.state;
      setText(badge, t(`state.${stream.state}`));
      description.hidden = !stream.description;
      setText(description, stream.description ?? "");
      setText(figures, figuresOf(stream, operates));
      if (!operates) return;
      recording.hidden = stream.recording?.state !== "running";
      setText(tracks, stream.tracks.map(format.track).join(" · "));
      const all = [...stream.warnings];
      if (stream.recording?.state === "failed") {
        all.push(t("recording.failed", { reason: stream.recording.reason ?? t("recording.unknownReason") }));
      }
      if (warned !== all.join("\n")) {
        warned = all.join("\n");
        warnings.replaceChildren(...all.map((w) => make("li", "", w)));
      }
      warnings.hidden = all.length === 0;
    },
  };
}

/** @param {import("../api/api.js").Stream} stream @param {boolean} operates */
function figuresOf(stream, operates) {
  const length = format.duration(stream.ageSeconds);
  if (stream.state === "ended") return t("stream.wasOnAir", { length });
  const parts = [many("stream.viewers", stream.viewers)];
  if (stream.state !== "offAir") parts.push(t("stream.onAir", { length }));
  if (operates) {
    if (stream.bitrate > 0) parts.push(format.bitrate(stream.bitrate));
    parts.push(KINDS.includes(stream.protocol) ? t(`kind.${stream.protocol}`) : t("stream.via", { protocol: stream.protocol }));
  }
  return parts.join(" · ");
}

/** @param {string} name @returns {number} The same colour for the same name. */
function hueOf(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}
