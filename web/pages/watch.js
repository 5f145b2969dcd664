/** The page of one stream: video, controls, messages and links. */

import "../ui/page-strings.js";
import { ServerClock } from "../api/api.js";
import { WatchSession } from "../engine/session.js";
import { codecName } from "../media/codecs.js";
import { locale, many, t } from "../strings/strings.js";
import { AudioMenu } from "../ui/audio-menu.js";
import { CaptionsMenu } from "../ui/captions-menu.js";
import { Controls } from "../ui/controls.js";
import { announce, byId, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { listenToKeys } from "../ui/keys.js";
import { isStreamName } from "../ui/links.js";
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
  say(t("phase.invalid"), t("name.sentence"), null);
  setBadge("notStarted", t("phase.notFound"));
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
    document.title = `${session.stream?.title || name} · weir`;
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

/** @param {string[]} names @returns {string} "H.264, AAC and Opus" */
const listed = (names) => new Intl.ListFormat(locale).format(names);

/** @param {WatchSession} session @returns {[string, string]} Title and explanation. */
function words(session) {
  switch (session.phase) {
    case "looking": case "waiting": return [t(`phase.${session.phase}`), ""];
    case "notStarted": case "starting": case "reconnecting": case "ended":
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

/** @param {WatchSession} session */
const spoken = (session) =>
  session.phase === "playing" ? t("announce.isLive", { name }) : session.phase === "looking" ? "" : words(session)[0];

/** @param {WatchSession} session @param {number} age Milliseconds since the phase began. */
function showPhase(session, age) {
  const { phase } = session;
  stage.dataset.phase = phase;
  const labels = {
    looking: "", notStarted: "badge.notStarted", starting: "state.starting", playing: "state.live", waiting: "state.live",
    reconnecting: "state.reconnecting", ended: "state.ended", unplayable: "state.live", full: "badge.full",
    unreachable: "badge.unreachable",
  };
  setBadge(phase, labels[phase] === "" ? "…" : t(labels[phase]));
  if (phase === "playing") {
    message.hidden = true;
    return;
  }
  if (phase === "waiting" && age < MESSAGE_DELAY_MILLISECONDS) return;
  const [title, text] = words(session);
  const canRetry = phase === "unreachable" || phase === "full";
  say(title, text, canRetry ? t("watch.tryNow") : null, ["looking", "starting", "waiting", "reconnecting"].includes(phase));
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
    if (document.body.dataset.tools === "true") {
      parts.push(...stream.tracks.map(format.track));
      if (stream.bitrate > 0) parts.push(format.bitrate(stream.bitrate));
    }
    parts.push(t("stream.onAir", { length: format.duration(stream.ageSeconds) }), many("stream.viewers", stream.viewers));
    if (stream.recording?.state === "running") parts.push(t("stream.recorded"));
  }
  setText(byId("summary", HTMLElement), parts.join(" · "));
  setText(byId("name", HTMLElement), stream?.title || name);
  const description = byId("description", HTMLElement);
  description.hidden = !stream?.description;
  setText(description, stream?.description ?? "");
  const audioOnly = Boolean(stream && stream.tracks.length > 0 && stream.tracks.every((track) => track.kind === "audio"));
  byId("audio-only", HTMLElement).hidden = !audioOnly;
  const warnings = stream?.warnings ?? [];
  const list = byId("warnings", HTMLElement);
  list.hidden = warnings.length === 0;
  if (list.dataset.shown !== warnings.join("\n")) {
    list.dataset.shown = warnings.join("\n");
    list.replaceChildren(...warnings.map((w) => make("li", "", w)));
  }
}
