/** The page of one stream: video, controls, messages and links. */

import { ServerClock } from "../api/api.js";
import { WatchSession } from "../engine/session.js";
import { codecName } from "../media/codecs.js";
import { AudioMenu } from "../ui/audio-menu.js";
import { CaptionsMenu } from "../ui/captions-menu.js";
import { Controls } from "../ui/controls.js";
import { announce, byId, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { listenToKeys } from "../ui/keys.js";
import { isStreamName, NAME_GRAMMAR } from "../ui/links.js";
import { QualityMenu } from "../ui/quality-menu.js";
import { SeekBar } from "../ui/seek-bar.js";

/** A shorter wait shows no message: it could not be read. */
const MESSAGE_DELAY_MILLISECONDS = 700;
/** The panels below the player are loaded after the first frame, but no later than this. */
const PANELS_MILLISECONDS = 1500;

const name = nameFromAddress();
const video = byId("video", HTMLVideoElement);
const stage = byId("stage", HTMLElement);
const message = byId("message", HTMLElement);
const badge = byId("badge", HTMLElement);
const lastFrame = byId("last-frame", HTMLCanvasElement);
const publish = byId("publish", HTMLDetailsElement);

setText(byId("name", HTMLElement), name);
document.title = `${name} · weir`;

if (isStreamName(name)) watch();
else {
  say("Invalid stream name", NAME_GRAMMAR, null);
  setBadge("notStarted", "Not found");
  byId("other-players", HTMLElement).hidden = true;
  publish.hidden = true;
  byId("controls", HTMLElement).hidden = true;
}

function watch() {
  const wanted = new URLSearchParams(location.search).get("player");
  const forced = wanted === "mse" || wanted === "hls" || wanted === "native" ? wanted : null;
  const session = new WatchSession(video, name, forced, keepLastFrame);
  const clock = new ServerClock();
  const controls = new Controls(video, session);
  const seekBar = new SeekBar(video, session);
  const quality = new QualityMenu(session);
  const audio = new AudioMenu(session);
  listenToKeys(controls, new CaptionsMenu(video));
  let phaseSince = performance.now();
  /** @type {import("../ui/details-panel.js").DetailsPanel | null} Loaded when it is first opened. */
  let details = null;
  /** @type {{refresh(): void} | null} */
  let panels = null;
  let panelsAt = performance.now() + PANELS_MILLISECONDS;

  const loadPanels = async () => {
    panelsAt = Infinity;
    try {
      const { openPanels } = await import("./watch-panels.js");
      panels = openPanels(name, session);
    } catch {
      panelsAt = performance.now() + PANELS_MILLISECONDS;
    }
  };
  byId("info", HTMLButtonElement).addEventListener("click", async () => {
    const { DetailsPanel } = await import("../ui/details-panel.js");
    details = new DetailsPanel(video, session, clock, forced);
    details.toggle();
  }, { once: true });
  byId("message-action", HTMLButtonElement).addEventListener("click", () => session.retry());
  for (const event of ["playing", "loadeddata"]) video.addEventListener(event, () => { lastFrame.hidden = true; });
  video.addEventListener("resize", fitStage);
  addEventListener("pagehide", () => session.stop());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  session.addEventListener("tick", (event) => {
    const { changed } = /** @type {CustomEvent} */ (event).detail;
    if (changed) {
      phaseSince = performance.now();
      if (session.phase === "notStarted") publish.open = true;
      announce(spoken(session));
    }
    showPhase(session, performance.now() - phaseSince);
    showSummary(session);
    controls.refresh();
    seekBar.refresh();
    quality.refresh();
    audio.refresh();
    details?.refresh();
    panels?.refresh();
    const isWaiting = ["looking", "starting", "waiting"].includes(session.phase) && performance.now() < panelsAt;
    if (panelsAt < Infinity && !isWaiting) loadPanels();
  });
  session.start();
}

/** The last segment of the path, decoded; left as it is if it cannot be decoded. */
function nameFromAddress() {
  const segment = location.pathname.split("/").filter(Boolean).at(-1) ?? "";
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** Keeps the last frame on the screen while the video element is reset. */
function keepLastFrame() {
  if (video.readyState < HTMLMediaElement.HAVE_CURRENT_DATA || video.videoWidth === 0) return;
  lastFrame.width = video.videoWidth;
  lastFrame.height = video.videoHeight;
  lastFrame.getContext("2d")?.drawImage(video, 0, 0);
  lastFrame.hidden = false;
}

/** Gives the stage the aspect ratio of the video, so that the layout does not jump and no bars appear. */
function fitStage() {
  if (video.videoWidth > 0) stage.style.setProperty("--shape", String(video.videoWidth / video.videoHeight));
}

/** @param {WatchSession} session @returns {[string, string]} Title and explanation. */
function words(session) {
  const unplayable = session.unplayable.map(codecName).join(" and ");
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
      `This browser cannot play ${unplayable}`,
      `The stream is live in ${session.unplayable.join(", ")}. ` +
        "Another browser may play it. ffplay and VLC can: see “Other players”.",
    ];
    case "full": {
      const wait = Math.max(0, Math.ceil((session.retryAt - performance.now()) / 1000));
      return ["The server is full", wait > 0 ? `Next try in ${wait} s.` : "Trying again."];
    }
    case "unreachable": return ["The server cannot be reached", "Trying again."];
    default: return ["", ""];
  }
}

/** @param {WatchSession} session */
const spoken = (session) =>
  session.phase === "playing" ? `${name} is live` : session.phase === "looking" ? "" : words(session)[0];

/** @param {WatchSession} session @param {number} age Milliseconds since the phase began. */
function showPhase(session, age) {
  const { phase } = session;
  stage.dataset.phase = phase;
  const labels = {
    looking: "…", notStarted: "Not started", starting: "Starting", playing: "Live", waiting: "Live",
    reconnecting: "Reconnecting", ended: "Ended", unplayable: "Live", full: "Full", unreachable: "Offline",
  };
  setBadge(phase, labels[phase]);
  if (phase === "playing") {
    message.hidden = true;
    return;
  }
  if (phase === "waiting" && age < MESSAGE_DELAY_MILLISECONDS) return;
  const [title, text] = words(session);
  const canRetry = phase === "unreachable" || phase === "full";
  say(title, text, canRetry ? "Try now" : null, ["looking", "starting", "waiting", "reconnecting"].includes(phase));
}

/** @param {string} phase @param {string} text */
function setBadge(phase, text) {
  badge.dataset.state = phase;
  setText(badge, text);
}

/** @param {string} title @param {string} text @param {string | null} action @param {boolean} busy */
function say(title, text, action, busy = false) {
  message.hidden = false;
  setText(byId("message-title", HTMLElement), title);
  setText(byId("message-text", HTMLElement), text);
  const button = byId("message-action", HTMLButtonElement);
  button.hidden = action === null;
  if (action !== null) setText(button, action);
  byId("spinner", HTMLElement).hidden = !busy;
}

/** @param {WatchSession} session */
function showSummary(session) {
  const { stream } = session;
  const parts = [];
  if (stream && stream.state !== "ended") {
    parts.push(...stream.tracks.map(format.track));
    if (stream.bitrate > 0) parts.push(format.bitrate(stream.bitrate));
    parts.push(`on air for ${format.duration(stream.ageSeconds)}`, format.plural(stream.viewers, "viewer"));
    if (stream.recording?.state === "running") parts.push("being recorded");
  }
  setText(byId("summary", HTMLElement), parts.join(" · "));
  const audioOnly = Boolean(stream && stream.tracks.length > 0 && stream.tracks.every((t) => t.kind === "audio"));
  byId("audio-only", HTMLElement).hidden = !audioOnly;
  const warnings = stream?.warnings ?? [];
  const list = byId("warnings", HTMLElement);
  list.hidden = warnings.length === 0;
  if (list.dataset.shown !== warnings.join("\n")) {
    list.dataset.shown = warnings.join("\n");
    list.replaceChildren(...warnings.map((w) => make("li", "", w)));
  }
}
