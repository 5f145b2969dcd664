/** The page that publishes: see yourself, press one button, and the stream is live. */

import "../ui/page-strings.js";
import { fetchOverview } from "../api/api.js";
import { base } from "../media/root.js";
import { isCopyOffered, offerCopy } from "../publish/copy-offer.js";
import { mayShareScreen } from "../publish/devices.js";
import { KeyField } from "../publish/key-field.js";
import { LevelMeter } from "../publish/level-meter.js";
import { LiveBar } from "../publish/live-bar.js";
import { LocalCopy } from "../publish/local-copy.js";
import { deviceProblem, pageProblem, screenProblem } from "../publish/problems.js";
import { RecordingSwitch } from "../publish/recording-switch.js";
import { Sender } from "../publish/sender.js";
import { SettingsPanel } from "../publish/settings-panel.js";
import { Studio } from "../publish/studio.js";
import { t } from "../strings/strings.js";
import { confirmButton } from "../ui/confirm-button.js";
import { announce, byId, setIcon, setText } from "../ui/dom.js";
import { isStreamName, viewerRows } from "../ui/links.js";
import { stayAwake } from "../ui/wake-lock.js";

const RETRY_MILLISECONDS = 5000;

/** Texts and looks of the badge, by the state of the sender. */
const BADGES = { idle: "ended", connecting: "starting", live: "live", reconnecting: "reconnecting" };

const [, , given = ""] = location.pathname.slice(base.length).split("/");
const nameInput = byId("name", HTMLInputElement);
const stage = byId("stage", HTMLElement);
const preview = byId("preview", HTMLVideoElement);
const buttons = {
  start: byId("start", HTMLButtonElement), stop: byId("stop", HTMLButtonElement), mute: byId("mute", HTMLButtonElement),
  cover: byId("cover", HTMLButtonElement), flip: byId("flip", HTMLButtonElement), screen: byId("screen", HTMLButtonElement),
  again: byId("again", HTMLButtonElement),
};

const panel = new SettingsPanel();
const key = new KeyField();
const studio = new Studio(() => streamName(), panel);
/** Of the present or the last publication. */
let copy = new LocalCopy();
/** @type {Sender | null} Null while nothing is published. */
let sender = null;
/** @type {LiveBar | null} */
let bar = null;
/** @type {RecordingSwitch | null} */
let recording = null;
/** @type {import("../api/api.js").Overview | null} */
let overview = null;
/** @type {LevelMeter | null} */
let meter = null;
/** @type {string | null} Why nothing can be published here; null if it can. */
let obstacle = pageProblem();
/** Changes of devices, one after the other. */
let changes = Promise.resolve();
let isScreenAsked = false;

showName();
connectButtons();
showState();
learn();
openStudio();

/** @returns {string} */
function streamName() { return given || nameInput.value.trim(); }

function showName() {
  const name = streamName();
  byId("name-row", HTMLElement).hidden = given !== "";
  if (given !== "") setText(byId("title", HTMLElement), name);
  document.title = t("publish.pageTitle", { name: given || t("publish.title") });
  const isValid = isStreamName(name);
  byId("name-hint", HTMLElement).hidden = isValid;
  nameInput.setAttribute("aria-invalid", String(!isValid));
  const link = byId("watch-link", HTMLAnchorElement);
  link.href = `${base}/watch/${encodeURIComponent(name)}`;
  link.hidden = !isValid;
  if (overview === null || !isValid) return;
  byId("viewers", HTMLElement).hidden = false;
  byId("viewer-rows", HTMLElement).replaceChildren(...viewerRows(name, overview));
}

/** What the server takes. */
async function learn() {
  try {
    overview = await fetchOverview();
  } catch {
    setTimeout(learn, RETRY_MILLISECONDS);
    return;
  }
  key.show(overview.publishKeyRequired);
  showName();
  if (!overview.webRTCPort) obstacle = t("publish.webRTCOff");
  if (obstacle !== null) say(null);
  showState();
}

function openStudio() {
  say(null);
  if (pageProblem() !== null) return;
  return attempt(async () => {
    try {
      await studio.open();
    } finally {
      meter ??= new LevelMeter(studio.audio);
    }
  });
}

/** @param {string | null} problem Null for none any more. @param {(() => void) | null} again */
function say(problem, again = null) {
  const text = problem ?? obstacle;
  byId("problem", HTMLElement).hidden = text === null;
  setText(byId("problem-text", HTMLElement), text ?? "");
  buttons.again.hidden = again === null;
  buttons.again.onclick = again;
}

/**
 * Changes devices, after the changes that are under way.
 * @param {() => Promise<void>} act
 * @param {(error: unknown) => string} explain
 */
function attempt(act, explain = deviceProblem) {
  changes = changes.then(async () => {
    try {
      await act();
      say(null);
    } catch (error) {
      // The menus show what is used, not what was tried.
      await studio.refresh().catch(() => {});
      say(explain(error), studio.isReady ? null : openStudio);
    }
    showState();
  });
  return changes;
}

function connectButtons() {
  nameInput.addEventListener("input", () => { showName(); showState(); });
  byId("setup", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    // Enter takes a number that was typed there.
    if (byId("expert", HTMLElement).contains(document.activeElement)) return;
    if (!buttons.start.disabled && sender === null) start();
  });
  buttons.start.addEventListener("click", start);
  // Viewers see the end, so it needs a confirmation.
  confirmButton(buttons.stop, stop, () => sender?.state === "live");
  buttons.mute.addEventListener("click", () => {
    studio.audio.mute(!studio.audio.isMuted);
    announce(t(studio.audio.isMuted ? "publish.muted" : "publish.unmuted"));
    showState();
  });
  buttons.cover.addEventListener("click", () => {
    studio.video.cover(!studio.video.isCovered);
    announce(t(studio.video.isCovered ? "publish.covered" : "publish.uncovered"));
  });
  buttons.flip.addEventListener("click", () => attempt(() => studio.flip()));
  buttons.screen.addEventListener("click", async () => {
    // The browser's question is open.
    if (isScreenAsked) return;
    isScreenAsked = true;
    await attempt(() => studio.toggleScreen(), screenProblem);
    isScreenAsked = false;
  });
  panel.addEventListener("change", (event) => attempt(() => take(/** @type {CustomEvent} */ (event).detail)));
  studio.addEventListener("devices", showState);
  studio.video.addEventListener("change", showVideo);
  studio.video.addEventListener("lost", () => say(t("publish.cameraLost")));
  studio.audio.addEventListener("lost", () => say(t("publish.microphoneLost")));
  studio.audio.addEventListener("change", () => {
    sender?.replace("audio", studio.audio.track);
    copy.change();
  });
  // The level is shown before Start, too. Any press of the page lets audio run.
  for (const event of ["pointerup", "keydown", "click"]) addEventListener(event, () => studio.audio.wake(), { capture: true });
  preview.addEventListener("resize", () => { stage.dataset.upright = String(preview.videoHeight > preview.videoWidth); });
  addEventListener("beforeunload", (event) => { if (sender !== null || isCopyOffered()) event.preventDefault(); });
  // Viewers need not wait for a publisher that will not come back.
  addEventListener("pagehide", () => { sender?.stop(); });
  addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
}

/**
 * Takes a setting that was changed.
 * @param {string} name
 */
async function take(name) {
  if (name === "bitrate") return sender?.tune();
  if (name === "codec" || name === "copy") return;
  // Where nothing could be opened, another choice may do.
  if (!studio.isReady) await studio.open();
  else if (name === "microphone" || name === "voice") await studio.takeMicrophone();
  else if (name === "camera") await studio.takeCamera();
  else if (["preset", "width", "height", "frameRate"].includes(name)) await studio.resizeCamera();
}

function showVideo() {
  const { video } = studio;
  const { track } = video;
  preview.srcObject = new MediaStream([track]);
  stage.dataset.mirrored = String(video.isMirrored);
  const note = byId("on-slate", HTMLElement);
  note.hidden = !video.isCovered;
  setText(note, t("publish.coverHint"));
  sender?.replace("video", track);
  copy.change();
  showState();
}

function start() {
  const name = streamName();
  if (!isStreamName(name)) return nameInput.focus();
  key.keep();
  say(null);
  const own = copy = new LocalCopy();
  const made = new Sender(name, key.key, () => panel.settings, () => studio.tracks);
  sender = made;
  made.addEventListener("change", () => follow(made, name, own));
  made.start().catch((error) => {
    console.warn(error);
    say(t("publish.failed"));
    made.stop();
  });
}

/**
 * A state of the sender.
 * @param {Sender} made
 * @param {string} name
 * @param {LocalCopy} own What is kept of it.
 */
function follow(made, name, own) {
  if (made !== sender) return;
  if (made.state === "live" && bar === null) begin(made, name);
  own.follow(made.state === "reconnecting");
  announce(t(`publishState.${made.state}`));
  if (made.endedBecause !== "" && made.state !== "idle") say(t("publish.sessionEnded", { reason: made.endedBecause }));
  if (made.state === "idle") finish(made, name, own);
  showState();
}

/**
 * The first connection.
 * @param {Sender} made
 * @param {string} name
 */
function begin(made, name) {
  if (panel.settings.copy) copy.start(() => ({ ...studio.tracks, bitrate: panel.settings.bitrate }));
  bar = new LiveBar(name, made, () => studio.video.frameRate);
  if (overview !== null) recording = new RecordingSwitch(name, key.key, overview);
  bar.addEventListener("slow", () => copy.restrict());
  bar.addEventListener("stream", (event) => recording?.show(/** @type {CustomEvent} */ (event).detail));
}

/**
 * The end.
 * @param {Sender} made
 * @param {string} name
 * @param {LocalCopy} own
 */
async function finish(made, name, own) {
  sender = null;
  bar?.end();
  bar = null;
  recording?.show(null);
  recording = null;
  if (made.reason !== null) say(made.reason);
  if (made.wantsKey) key.ask();
  await own.stop();
  // What the server has needs no copy.
  if (made.interruptions > 0) offerCopy(name, own);
  own.forget();
}

async function stop() { await sender?.stop(); }

function showState() {
  const state = sender?.state ?? "idle";
  const badge = byId("badge", HTMLElement);
  badge.dataset.state = BADGES[state];
  setText(badge, t(`publishState.${state}`));
  stage.dataset.live = String(state === "live");
  const isOff = state === "idle";
  const hadFocus = [buttons.start, buttons.stop].some((button) => button === document.activeElement);
  buttons.start.hidden = !isOff;
  buttons.stop.hidden = isOff;
  // The one takes the place of the other, also for the keyboard.
  if (hadFocus) (isOff ? buttons.start : buttons.stop).focus();
  const isReady = meter !== null && studio.isReady;
  buttons.start.disabled = !isReady || obstacle !== null || !isStreamName(streamName());
  buttons.mute.disabled = buttons.cover.disabled = !isReady;
  press(buttons.mute, studio.audio.isMuted, "microphone");
  press(buttons.cover, studio.video.isCovered, "camera");
  buttons.flip.hidden = studio.cameras.length < 2 || !studio.video.hasCamera;
  buttons.screen.hidden = pageProblem() !== null || !mayShareScreen();
  press(buttons.screen, studio.video.hasScreen, null);
  nameInput.disabled = !isOff;
  panel.lock(!isOff);
  stayAwake(stage, !isOff);
}

/** @param {HTMLButtonElement} button @param {boolean} isPressed @param {string | null} symbol Its icon while it is not pressed. */
function press(button, isPressed, symbol) {
  button.setAttribute("aria-pressed", String(isPressed));
  if (symbol !== null) setIcon(button, isPressed ? `${symbol}-off` : symbol);
}
