/** The home page: live streams, recordings, and how to publish. */

import { AdminDialog } from "../admin/admin-dialog.js";
import { SourceList } from "../admin/source-list.js";
import { addressOf, fetchOverview, fetchRecordings } from "../api/api.js";
import { recordingCard } from "../recordings/recording-card.js";
import { announce, byId, setText } from "../ui/dom.js";
import { plural } from "../ui/format.js";
import { isStreamName, publishRows } from "../ui/links.js";
import { streamCard } from "./stream-card.js";

const REFRESH_MILLISECONDS = 2000;
const RECORDINGS_EVERY = 5;
const RECORDINGS_PAGE = 30;
const RECORDS_STREAMS = "Published streams are recorded. When a stream ends, its recording can be played and downloaded here.";
const RECORDS_NOTHING = "Recording is off: this server was started with --no-record.";

/** @typedef {{element: HTMLElement, update: (item: any) => void}} Card */

const streamCards = /** @type {Map<string, Card>} */ (new Map());
const recordingCards = /** @type {Map<string, Card>} */ (new Map());
/** @type {Map<string, string>} The last known state of each stream. */
const states = new Map();
/** @type {import("../api/api.js").Overview | null} */
let overview = null;
/** @type {import("../api/api.js").Recording[]} */
let recordings = [];
let recordingsTotal = 0;
let recordingsShown = RECORDINGS_PAGE;
let publishShown = "";
let rounds = 0;

const manage = byId("manage", HTMLButtonElement);
const sources = new SourceList(refresh);
new AdminDialog([manage], () => sources.refresh());
const publish = byId("publish", HTMLDetailsElement);
const nameInput = byId("name", HTMLInputElement);

nameInput.addEventListener("input", showPublish);
byId("publish-name", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
byId("more-recordings", HTMLButtonElement).addEventListener("click", () => {
  recordingsShown += RECORDINGS_PAGE;
  showRecordings();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
setInterval(() => { if (!document.hidden) refresh(); }, REFRESH_MILLISECONDS);
refresh();

async function refresh() {
  try {
    const first = overview === null;
    overview = await fetchOverview();
    byId("connection", HTMLElement).hidden = true;
    setText(byId("version", HTMLElement), `weir ${overview.version}`);
    showStreams(overview.streams, first);
    showPublish();
    manage.hidden = overview.writable !== true;
    await sources.refresh();
    if (rounds % RECORDINGS_EVERY === 0) await refreshRecordings();
    rounds += 1;
  } catch {
    byId("connection", HTMLElement).hidden = false;
  }
}

async function refreshRecordings() {
  const page = await fetchRecordings();
  recordings = page.recordings;
  recordingsTotal = page.total;
  showRecordings();
}

/** @param {import("../api/api.js").Stream[]} streams @param {boolean} first Whether this is the first list of the page. */
function showStreams(streams, first) {
  const rank = { live: 0, starting: 1, reconnecting: 2, ended: 3 };
  const sorted = [...streams].sort((a, b) => (rank[a.state] ?? 4) - (rank[b.state] ?? 4) || (a.name < b.name ? -1 : 1));
  const list = byId("streams", HTMLElement);
  arrange(list, streamCards, sorted, (s) => s.name, streamCard);
  const live = sorted.filter((s) => s.state === "live").length;
  setText(byId("streams-count", HTMLElement), sorted.length > 0 ? `${live} live` : "");
  byId("no-streams", HTMLElement).hidden = sorted.length > 0;
  if (first) publish.open = sorted.length === 0;
  const news = [];
  for (const stream of sorted) {
    const before = states.get(stream.name);
    if (!first && before !== stream.state && (stream.state === "live" || stream.state === "ended")) {
      news.push(`${stream.name} ${stream.state === "live" ? "went live" : "has ended"}`);
      rounds = 0;
    }
    states.set(stream.name, stream.state);
  }
  if (news.length > 0) announce(news.join(", "));
}

function showRecordings() {
  const shown = recordings.slice(0, recordingsShown);
  arrange(byId("recordings-list", HTMLElement), recordingCards, shown, addressOf, recordingCard);
  setText(byId("recordings-count", HTMLElement), recordingsTotal > 0 ? plural(recordingsTotal, "recording") : "");
  byId("all-recordings", HTMLElement).hidden = recordings.length === 0;
  const none = byId("no-recordings", HTMLElement);
  none.hidden = recordings.length > 0;
  setText(none, overview?.records === false ? RECORDS_NOTHING : RECORDS_STREAMS);
  byId("more-recordings", HTMLButtonElement).hidden = recordings.length <= recordingsShown;
}

function showPublish() {
  if (overview === null) return;
  const name = nameInput.value.trim();
  const valid = isStreamName(name);
  byId("name-hint", HTMLElement).hidden = valid;
  nameInput.setAttribute("aria-invalid", String(!valid));
  byId("open-warning", HTMLElement).hidden = overview.publishKeyRequired || !overview.rtmpPort;
  const wanted = `${name} ${overview.rtmpPort} ${overview.publishKeyRequired}`;
  if (!valid || wanted === publishShown) return;
  publishShown = wanted;
  byId("publish-rows", HTMLElement).replaceChildren(...publishRows(name, overview));
}

/**
 * Makes a list show these items in this order. The elements of items that stay are kept, with their focus and selection.
 * @template T
 * @param {HTMLElement} list
 * @param {Map<string, Card>} cards
 * @param {T[]} items
 * @param {(item: T) => string} keyOf
 * @param {() => Card} create
 */
function arrange(list, cards, items, keyOf, create) {
  const keys = new Set(items.map(keyOf));
  for (const [key, card] of cards) {
    if (keys.has(key)) continue;
    card.element.remove();
    cards.delete(key);
  }
  items.forEach((item, position) => {
    const key = keyOf(item);
    const card = cards.get(key) ?? create();
    cards.set(key, card);
    card.update(item);
    if (list.children[position] !== card.element) list.insertBefore(card.element, list.children[position] ?? null);
  });
}
