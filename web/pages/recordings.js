/** The page of recordings: the gallery, the running recordings, and the use of the disk. */

import { AdminDialog } from "../admin/admin-dialog.js";
import { change, hasToken } from "../api/admin.js";
import { addressOf, fetchOverview, fetchRecording, fetchRecordings, fetchStorage } from "../api/api.js";
import { galleryCard } from "../recordings/gallery-card.js";
import { playRecording } from "../recordings/play-recording.js";
import { showNow } from "../recordings/running-recordings.js";
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

filter.addEventListener("submit", (event) => event.preventDefault());
filter.addEventListener("input", () => reload());
filter.addEventListener("reset", () => setTimeout(reload));
more.addEventListener("click", () => append());
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
playAsked(asked.get("stream"), asked.get("play"));

/** @param {string | null} stream @param {string | null} file */
async function playAsked(stream, file) {
  if (stream === null || file === null) return;
  try {
    const recording = await fetchRecording(stream, file);
    if (isOwnFile(recording.url)) playRecording(recording);
  } catch {
    offerUndo("This recording no longer exists.", null);
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
    from: day("from", 0), to: day("to", 1),
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

function show() {
  const list = byId("gallery", HTMLElement);
  const finished = shown.filter((r) => r.state !== "running");
  const keys = new Set(finished.map(addressOf));
  for (const [key, card] of cards) {
    if (keys.has(key)) continue;
    card.element.remove();
    cards.delete(key);
  }
  finished.forEach((recording, position) => {
    const key = addressOf(recording);
    const card = cards.get(key) ?? galleryCard(actions);
    cards.set(key, card);
    card.update(recording, hasToken());
    if (list.children[position] !== card.element) list.insertBefore(card.element, list.children[position] ?? null);
  });
  setText(byId("count", HTMLElement), total > 0 ? format.plural(total, "recording") + (total >= COUNTED ? " or more" : "") : "");
  more.hidden = next === null;
  byId("nothing", HTMLElement).hidden = finished.length > 0;
  showNothing();
}

/** Shows why the list is empty. */
function showNothing() {
  const isNarrowed = Object.values(wanted()).some((value) => value !== "");
  const off = "Recording is off: this server was started with --no-record.";
  setText(
    byId("nothing", HTMLElement), !isRecording ? off : isNarrowed ? "No recordings match." : "Nothing has been recorded yet.");
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
    writable = storage?.writable ?? false;
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
  const text = `${format.size(recordedBytes)} recorded · ${format.size(freeBytes)} of ${format.size(totalBytes)} free`;
  bar.setAttribute("aria-valuetext", text);
  setText(byId("disk-text", HTMLElement), text);
}

// MARK: Actions

const actions = {
  /** @param {import("../api/api.js").Recording} recording */
  async remove(recording) {
    const label = `${recording.stream}, ${format.moment(recording.startedAt)}`;
    if (!(await attempt("DELETE", addressOf(recording), `${label} deleted`))) return;
    offerUndo(`${label} is deleted.`, () => actions.restore(recording));
  },
  /** @param {import("../api/api.js").Recording} recording */
  async restore(recording) {
    hideUndo();
    await attempt("POST", `${addressOf(recording)}/restore`, "Restored");
  },
  /** @param {import("../api/api.js").Recording} recording */
  async protect(recording) {
    const word = recording.protected ? "unprotect" : "protect";
    await attempt("POST", `${addressOf(recording)}/${word}`, recording.protected ? "No longer protected" : "Protected");
  },
};

/** @param {string} stream @param {"start" | "stop" | "cancel"} action */
async function control(stream, action) {
  const done = { start: "Recording", stop: "Stopped", cancel: "Discarded" }[action];
  await attempt("POST", `/api/v1/streams/${encodeURIComponent(stream)}/recording/${action}`, `${stream}: ${done}`);
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
    offerUndo(error instanceof Error ? error.message : "The request failed.", null);
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
