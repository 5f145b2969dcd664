/** The page of one stream: video, controls, messages and links. */

import "../ui/page-strings.js";
import { ServerClock } from "../api/api.js";
import { WatchSession } from "../engine/session.js";
import { many, t } from "../strings/strings.js";
import { AudioMenu } from "../ui/audio-menu.js";
import { CaptionsMenu } from "../ui/captions-menu.js";
import { Controls } from "../ui/controls.js";
import { announce, byId, make, plain, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { listenToKeys } from "../ui/keys.js";
import { isStreamName } from "../ui/links.js";
import { QualityMenu } from "../ui/quality-menu.js";
import { SeekBar } from "../ui/seek-bar.js";
import { Stage } from "../ui/stage.js";

/** Texts of the badge, by phase. */
const BADGES = {
  looking: "", notStarted: "badge.notStarted", starting: "state.starting", playing: "state.live", waiting: "state.live",
  reconnecting: "state.reconnecting", offAir: "state.offAir", ended: "state.ended", unplayable: "state.live", full: "badge.full",
  unreachable: "badge.unreachable",
};
/** The panels below the player are loaded after the first frame, but no later than this. */
const PANELS_MILLISECONDS = 1500;

const name = nameFromAddress();
const video = byId("video", HTMLVideoElement);
const stage = new Stage(video);
const badge = byId("badge", HTMLElement);
const publish = byId("publish", HTMLDetailsElement);

showTitle(null);

if (isStreamName(name)) watch();
else {
  stage.say(t("phase.invalid"), t("name.sentence"));
  setBadge("notStarted", t("phase.notFound"));
  byId("other-players", HTMLElement).hidden = true;
  publish.hidden = true;
  byId("controls", HTMLElement).hidden = true;
}

function watch() {
  const wanted = new URLSearchParams(location.search).get("player");
  const forced = wanted === "mse" || wanted === "hls" || wanted === "native" || wanted === "webrtc" ? wanted : null;
  const session = new WatchSession(video, name, forced, () => stage.keepLastFrame());
  const clock = new ServerClock();
  const controls = new Controls(video, session);
  const seekBar = new SeekBar(video, session);
  const quality = new QualityMenu(session);
  const audio = new AudioMenu(session);
  listenToKeys(controls, new CaptionsMenu(video));
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
  video.addEventListener("resize", () => stage.fit());
  addEventListener("pagehide", () => session.stop());
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

  session.addEventListener("tick", (event) => {
    const { changed } = /** @type {CustomEvent} */ (event).detail;
    if (changed) {
      if (session.phase === "notStarted") publish.open = true;
      announce(stage.spoken(session, name));
      setBadge(session.phase, BADGES[session.phase] === "" ? "…" : t(BADGES[session.phase]));
    }
    stage.refresh(session, changed);
    showTitle(session.stream);
    showSummary(session);
    showFallback(session);
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

/** @param {import("../api/api.js").Stream | null} stream */
function showTitle(stream) {
  const title = plain(stream?.title ?? "") || name;
  const description = byId("description", HTMLElement);
  setText(byId("name", HTMLElement), title);
  setText(description, plain(stream?.description ?? ""));
  description.hidden = description.textContent === "";
  // The page comes with its title. It is written again when that has changed.
  if (stream !== null || !isStreamName(name)) document.title = `${title} · weir`;
}

/**
 * Says why the page does not play with the lowest delay, where that was asked for.
 * @param {WatchSession} session
 */
function showFallback({ fallback, fallbackEnding: reason }) {
  const line = byId("fallback", HTMLElement);
  line.hidden = fallback === null;
  const why = reason === "" ? t(`fallback.${fallback}`) : t("fallback.ended", { reason });
  setText(line, fallback === null ? "" : t("fallback.sentence", { why }));
}

/** @param {string} phase @param {string} text */
function setBadge(phase, text) {
  badge.dataset.state = phase;
  setText(badge, text);
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
    if (stream.state !== "offAir") parts.push(t("stream.onAir", { length: format.duration(stream.ageSeconds) }));
    parts.push(many("stream.viewers", stream.viewers));
    if (stream.recording?.state === "running") parts.push(t("stream.recorded"));
  }
  setText(byId("summary", HTMLElement), parts.join(" · "));
  const warnings = stream?.warnings ?? [];
  const list = byId("warnings", HTMLElement);
  list.hidden = warnings.length === 0;
  if (list.dataset.shown !== warnings.join("\n")) {
    list.dataset.shown = warnings.join("\n");
    list.replaceChildren(...warnings.map((w) => make("li", "", w)));
  }
}
