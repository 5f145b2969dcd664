/** One stream in the list of the home page. */

import { base } from "../media/early-requests.js";
import { icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";

const STATES = { live: "Live", starting: "Starting", reconnecting: "Reconnecting", ended: "Ended" };
/** Text for publishers that have no protocol name. */
/** @type {Record<string, string>} */
const PROTOCOLS = { test: "test pattern", file: "from a file", capture: "camera and microphone" };
const HUES = 6;

/** @returns {import("./index.js").Card} */
export function streamCard() {
  const tile = make("span", "stream-tile", icon("play"));
  const name = /** @type {HTMLAnchorElement} */ (make("a", "stream-link"));
  const badge = make("span", "badge");
  const recording = make("span", "badge", "Recording");
  const tracks = make("p", "stream-tracks");
  const figures = make("p", "stream-figures");
  const warnings = make("ul", "warnings");
  const head = make("div", "stream-head", make("h3", "", name), badge, recording);
  const element = make("li", "stream panel", tile, make("div", "stream-body", head, tracks, figures, warnings));
  recording.dataset.state = "live";
  let warned = "";

  return {
    element,
    /** @param {import("../api/api.js").Stream} stream */
    update(stream) {
      setText(name, stream.name);
      name.href = `${base}/watch/${encodeURIComponent(stream.name)}`;
      element.dataset.state = stream.state;
      tile.dataset.hue = String(hueOf(stream.name));
      badge.dataset.state = stream.state;
      setText(badge, STATES[stream.state] ?? stream.state);
      recording.hidden = stream.recording?.state !== "running";
      setText(tracks, stream.tracks.map(format.track).join(" · "));
      setText(figures, figuresOf(stream));
      const all = [...stream.warnings];
      if (stream.recording?.state === "failed") {
        all.push(`The recording failed: ${stream.recording.reason ?? "unknown reason"}`);
      }
      if (warned !== all.join("\n")) {
        warned = all.join("\n");
        warnings.replaceChildren(...all.map((w) => make("li", "", w)));
      }
      warnings.hidden = all.length === 0;
    },
  };
}

/** @param {import("../api/api.js").Stream} stream */
function figuresOf(stream) {
  if (stream.state === "ended") return `was on air for ${format.duration(stream.ageSeconds)}`;
  const parts = [];
  if (stream.bitrate > 0) parts.push(format.bitrate(stream.bitrate));
  parts.push(`on air for ${format.duration(stream.ageSeconds)}`, format.plural(stream.viewers, "viewer"));
  parts.push(PROTOCOLS[stream.protocol] ?? `via ${stream.protocol}`);
  return parts.join(" · ");
}

/** @param {string} name @returns {number} The same colour for the same name. */
function hueOf(name) {
  let sum = 0;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}
