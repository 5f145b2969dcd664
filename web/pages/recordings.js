/** The page of recordings: the gallery, the running recordings, and the use of the disk. */

import "../ui/page-strings.js";
import { AdminDialog } from "../admin/admin-dialog.js";
import { showTools } from "../admin/tools.js";
import { change, hasToken } from "../api/admin.js";
import { addressOf, fetchOverview, fetchRecording, fetchRecordings, fetchStorage } from "../api/api.js";
import { root } from "../media/root.js";
import { galleryCard } from "../recordings/gallery-card.js";
import { playRecording } from "../recordings/play-recording.js";
import { linkedRecording } from "../recordings/recording-link.js";
import { showNow } from "../recordings/running-recordings.js";
import { Selection } from "../recordings/selection.js";
import { many, t } from "../strings/strings.js";
import { announce, byId, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { isOwnFile } from "../ui/links.js";

const REFRESH_MILLISECONDS = 3000;
const PAGE = 48;
const MOST_AT_ONCE = 1000;
/** The server counts no further than this. */
const COUNTED = 10000;
const UNDO_MILLISECONDS = 20000;

/** @type {Map<string, ReturnType<typeof galleryCard>>} */
const cards = new Map();
/** @type {import("../api/api.js").Recording[]} */
let shown = [];
let next = /** @type {string | null} */ (null);
let total = 0;
let writable = false;
/** Whether the server records anything. */
let isRecording = true;
/** Running recordings and storage, as text. The list is fetched again when it changes. */
let lastState = "";
let loading = false;
let undoTimer = 0;

const filter = byId("filter", HTMLFormElement);
const admin = new AdminDialog([byId("manage", HTMLButtonElement)], showManage);
const more = byId("more", HTMLButtonElement);
const selectAll = byId("select-all", HTMLButtonElement);
const selection = new Selection(show, removeAll);
/** Deletions and restorations that are under way at a time. */
const AT_ONCE = 4;

filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", () => reload());
filter.addEventListener("reset", () => setTimeout(reload));
more.addEventListener("click", () => append());
selectAll.addEventListener("click", () => selection.add(finished()));
document.addEventListener("recording-annotated", () => reload());
new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) append(); }, { rootMargin: "600px" })
  .observe(more);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MILLISECONDS);
byId("undo-close", HTMLButtonElement).addEventListener("click", hideUndo);
// The query may name a stream to filter by, and a recording of it to play.
const asked = new URLSearchParams(location.search);
byId("filter-stream", HTMLInputElement).value = asked.get("stream") ?? "";
/** The content above the list. The list waits for it, so that it does not move afterwards. */
const above = showManage();
reload();
playAsked();

async function playAsked() {
  const link = linkedRecording(location.search);
  if (link === null) return;
  try {
    const recording = await fetchRecording(link.stream, link.file);
    if (isOwnFile(recording.url) || recording.state === "running") playRecording(recording, link.at);
  } catch {
    offerUndo(t("recording.gone"), null);
  }
}

// MARK: The list

/** @returns {Record<string, string>} The API's query for what the form says. */
function wanted() {
  const data = new FormData(filter);
  const day = (/** @type {string} */ name, /** @type {number} */ offset) => {
    const text = String(data.get(name) ?? "");
    if (text === "") return "";
    const [year, month, date] = text.split("-").map(Number);
    return new Date(year, month - 1, date + offset).toISOString();
  };
  return {
    stream: String(data.get("stream") ?? "").trim(), state: String(data.get("state") ?? ""),
    from: day("from", 0), to: day("to", 1), sort: String(data.get("sort") ?? ""),
  };
}

/** Fetches as many recordings as are shown, from the newest on. */
async function reload() {
  loading = true;
  const query = wanted();
  try {
    const limit = Math.min(MOST_AT_ONCE, Math.max(PAGE, shown.length));
    const [page] = await Promise.all([fetchRecordings({ ...query, limit }), above]);
    if (JSON.stringify(query) !== JSON.stringify(wanted())) return;
    ({ next, total } = page);
    shown = page.recordings;
    show();
  } catch {
    // The API refuses an incomplete stream name. No recordings match it.
    shown = [];
    [next, total] = [null, 0];
    show();
  } finally {
    loading = false;
  }
}

async function append() {
  if (loading || next === null) return;
  loading = true;
  try {
    const page = await fetchRecordings({ ...wanted(), limit: PAGE, cursor: next });
    ({ next, total } = page);
    const known = new Set(shown.map(addressOf));
    shown = [...shown, ...page.recordings.filter((r) => !known.has(addressOf(r)))];
    show();
  } finally {
    loading = false;
  }
}

const finished = () => shown.filter((r) => r.state !== "running");

function show() {
  const list = byId("gallery", HTMLElement);
  const whole = finished();
  const keys = new Set(whole.map(addressOf));
  selection.refresh(whole, hasToken());
  selectAll.hidden = whole.length === 0;
  for (const [key, card] of cards) {
    if (keys.has(key)) continue;
    card.element.remove();
    cards.delete(key);
  }
  whole.forEach((recording, position) => {
    const key = addressOf(recording);
    const card = cards.get(key) ?? galleryCard(actions, selection);
    cards.set(key, card);
    card.update(recording, hasToken());
    if (list.children[position] !== card.element) list.insertBefore(card.element, list.children[position] ?? null);
  });
  setText(byId("count", HTMLElement), total > 0 ? many(total >= COUNTED ? "page.recordingCountOrMore" : "page.recordingCount", total) : "");
  more.hidden = next === null;
  byId("nothing", HTMLElement).hidden = whole.length > 0;
  showNothing();
}

/** Shows why the list is empty. */
function showNothing() {
  const { sort: _, ...conditions } = wanted();
  const isNarrowed = Object.values(conditions).some((value) => value !== "");
  setText(
    byId("nothing", HTMLElement),
    t(!isRecording ? "recordings.off" : isNarrowed ? "recordings.noMatch" : "recordings.nothing"));
}

// MARK: Polling

async function refresh() {
  try {
    const overview = await fetchOverview();
    const [running, storage] = await Promise.all([
      fetchRecordings({ state: "running", limit: 100 }), fetchStorage(overview)]);
    isRecording = overview.records !== false;
    showNothing();
    byId("connection", HTMLElement).hidden = true;
    writable = overview.writable === true;
    showTools(overview);
    byId("manage", HTMLButtonElement).hidden = !writable;
    showDisk(storage);
    showNow(overview.streams, running.recordings, hasToken(), control);
    const names = [...new Set([...overview.streams.map((s) => s.name), ...shown.map((r) => r.stream)])].sort();
    const options = byId("streams", HTMLDataListElement);
    if (options.dataset.names !== names.join()) {
      options.dataset.names = names.join();
      options.replaceChildren(...names.map((name) => new Option(name)));
    }
    const state = [...running.recordings.map(addressOf), storage?.deletedBytes, (storage?.recordedBytes ?? 0) > 0].join();
    if (lastState === "") {
      lastState = state;
    } else if (state !== lastState && !loading) {
      lastState = state;
      await reload();
    }
  } catch {
    byId("connection", HTMLElement).hidden = false;
  }
}

/** @param {import("../api/api.js").Storage | null} storage */
function showDisk(storage) {
  const disk = byId("disk", HTMLElement);
  const { freeBytes, totalBytes, recordedBytes = 0, deletedBytes = 0, keepFreeBytes = 0 } = storage ?? {};
  disk.hidden = !totalBytes || freeBytes == null;
  if (!totalBytes || freeBytes == null) return;
  const part = (/** @type {number} */ bytes) => Math.min(100, (bytes / totalBytes) * 100);
  const used = part(totalBytes - freeBytes);
  const recorded = Math.min(used, part(recordedBytes + deletedBytes));
  const bar = byId("disk-bar", HTMLElement);
  bar.style.setProperty("--recorded", `${recorded}%`);
  bar.style.setProperty("--other", `${used - recorded}%`);
  bar.setAttribute("aria-valuenow", String(Math.round(used)));
  disk.dataset.state = freeBytes < keepFreeBytes * 2 ? "short" : "";
  const text = t("disk.use", {
    recorded: format.size(recordedBytes), free: format.size(freeBytes), total: format.size(totalBytes) });
  bar.setAttribute("aria-valuetext", text);
  setText(byId("disk-text", HTMLElement), text);
}

// MARK: Actions

const actions = {
  /** @param {import("../api/api.js").Recording} recording */
  async remove(recording) {
    const label = `${recording.name ?? recording.stream}, ${format.moment(recording.startedAt)}`;
    if (!(await attempt("DELETE", addressOf(recording), t("recording.isDeleted", { recording: label })))) return;
    offerUndo(t("recording.isDeleted", { recording: label }), () => actions.restore(recording));
  },
  /** @param {import("../api/api.js").Recording} recording */
  async restore(recording) {
    hideUndo();
    await attempt("POST", `${addressOf(recording)}/restore`, t("recording.restored"));
  },
  /** @param {import("../api/api.js").Recording} recording */
  async protect(recording) {
    const word = recording.protected ? "unprotect" : "protect";
    await attempt("POST", `${addressOf(recording)}/${word}`, t(recording.protected ? "recording.unprotected" : "state.protected"));
  },
};

/** @param {import("../api/api.js").Recording[]} recordings */
async function removeAll(recordings) {
  const { done, problem } = await each(recordings, (recording) => change("DELETE", addressOf(recording)));
  selection.clear();
  await reload();
  const text = many("recording.manyDeleted", done.length);
  announce(text);
  offerUndo(problem === null ? text : `${text} ${problem}`, done.length === 0 ? null : async () => {
    hideUndo();
    const again = await each(done, (recording) => change("POST", `${addressOf(recording)}/restore`));
    announce(many("recording.manyRestored", again.done.length));
    if (again.problem !== null) offerUndo(again.problem, null);
    await reload();
  });
}

/**
 * A few at a time.
 * @param {import("../api/api.js").Recording[]} recordings
 * @param {(recording: import("../api/api.js").Recording) => Promise<any>} act
 * @returns {Promise<{done: import("../api/api.js").Recording[], problem: string | null}>} The first reason of a failure.
 */
async function each(recordings, act) {
  const waiting = [...recordings];
  const done = /** @type {import("../api/api.js").Recording[]} */ ([]);
  let problem = /** @type {string | null} */ (null);
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await act(next);
        done.push(next);
      } catch (error) {
        problem ??= error instanceof Error ? error.message : t("page.failed");
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return { done, problem };
}

/** @param {string} stream @param {"start" | "stop" | "cancel"} action */
async function control(stream, action) {
  await attempt("POST", `${root}/api/v1/streams/${encodeURIComponent(stream)}/recording/${action}`, t("recorded.of", { stream, done: t(`recorded.${action}`) }));
  await refresh();
}

/** @param {"POST" | "DELETE"} method @param {string} path @param {string} done @returns {Promise<boolean>} */
async function attempt(method, path, done) {
  let worked = true;
  try {
    await change(method, path);
    announce(done);
  } catch (error) {
    worked = false;
    offerUndo(error instanceof Error ? error.message : t("page.failed"), null);
    if (!hasToken()) showManage();
  }
  await reload();
  return worked;
}

/** @param {string} text @param {(() => void) | null} undo */
function offerUndo(text, undo) {
  const button = byId("undo-button", HTMLButtonElement);
  setText(byId("undo-text", HTMLElement), text);
  button.hidden = undo === null;
  button.onclick = undo;
  byId("undo", HTMLElement).hidden = false;
  clearTimeout(undoTimer);
  undoTimer = setTimeout(hideUndo, UNDO_MILLISECONDS);
}

function hideUndo() {
  clearTimeout(undoTimer);
  byId("undo", HTMLElement).hidden = true;
}

// MARK: The token

/** Shows or hides the buttons that need the token. */
function showManage() {
  admin.refresh();
  document.body.dataset.admin = String(hasToken());
  if (shown.length > 0) show();
  return refresh();
}
