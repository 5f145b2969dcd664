/** The home page: live streams, recordings, and how to publish. */

import "../ui/page-strings.js";
import { AdminDialog } from "../admin/admin-dialog.js";
import { SourceList } from "../admin/source-list.js";
import { showTools } from "../admin/tools.js";
import { addressOf, fetchOverview, fetchRecordings } from "../api/api.js";
import { recordingCard } from "../recordings/recording-card.js";
import { many, t } from "../strings/strings.js";
import { announce, byId, setText } from "../ui/dom.js";
import { isStreamName, publishRows } from "../ui/links.js";
import { StreamList } from "./stream-list.js";

const REFRESH_MILLISECONDS = 2000;
/** With more streams the list is fetched less often: each one above this number adds 20 ms. */
const FEW_STREAMS = 50;
const STREAM_MILLISECONDS = 20;
const LONGEST_REFRESH_MILLISECONDS = 30_000;
/** Names in one announcement. */
const ANNOUNCED = 3;
const RECORDINGS_EVERY = 5;
const RECORDINGS_PAGE = 30;
/** @typedef {{element: HTMLElement, update: (item: any) => void}} Card */

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
const streamList = new StreamList();
new AdminDialog([manage], refresh);
const publish = byId("publish", HTMLDetailsElement);
const nameInput = byId("name", HTMLInputElement);

nameInput.addEventListener("input", showPublish);
byId("publish-name", HTMLFormElement).addEventListener("submit", (event) => event.preventDefault());
byId("more-recordings", HTMLButtonElement).addEventListener("click", () => {
  recordingsShown += RECORDINGS_PAGE;
  showRecordings();
});
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
let timer = 0;
refresh();

async function refresh() {
  clearTimeout(timer);
  try {
    const first = overview === null;
    overview = await fetchOverview();
    byId("connection", HTMLElement).hidden = byId("no-answer", HTMLElement).hidden = true;
    setText(byId("version", HTMLElement), `weir ${overview.version}`);
    const operates = showTools(overview);
    showStreams(overview.streams, first, operates);
    showPublish();
    manage.hidden = overview.writable !== true;
    await sources.refresh();
    if (rounds % RECORDINGS_EVERY === 0) await refreshRecordings();
    rounds += 1;
  } catch {
    byId("connection", HTMLElement).hidden = false;
    // What was shown before stays. A page with nothing to show says why.
    byId("no-answer", HTMLElement).hidden = overview !== null;
  }
  clearTimeout(timer);
  if (document.hidden) return;
  const count = overview?.streams.length ?? 0;
  const pause = REFRESH_MILLISECONDS + Math.max(0, count - FEW_STREAMS) * STREAM_MILLISECONDS;
  timer = setTimeout(refresh, Math.min(pause, LONGEST_REFRESH_MILLISECONDS));
}

async function refreshRecordings() {
  const page = await fetchRecordings();
  recordings = page.recordings;
  recordingsTotal = page.total;
  showRecordings();
}

/**
 * @param {import("../api/api.js").Stream[]} streams
 * @param {boolean} first Whether this is the first list of the page.
 * @param {boolean} operates Whether the tools of operators are shown.
 */
function showStreams(streams, first, operates) {
  streamList.show(streams, operates);
  byId("no-streams", HTMLElement).hidden = streams.length > 0;
  if (first) publish.open = streams.length === 0;
  const news = [];
  for (const stream of streams) {
    const before = states.get(stream.name);
    if (!first && before !== stream.state && (stream.state === "live" || stream.state === "ended")) {
      news.push(t(`announce.${stream.state}`, { name: stream.title || stream.name }));
      rounds = 0;
    }
    states.set(stream.name, stream.state);
  }
  const more = news.length - ANNOUNCED;
  if (more > 0) news.splice(ANNOUNCED, more, many("announce.more", more));
  if (news.length > 0) announce(news.join(", "));
}

function showRecordings() {
  const shown = recordings.slice(0, recordingsShown);
  arrange(byId("recordings-list", HTMLElement), recordingCards, shown, addressOf, recordingCard);
  setText(byId("recordings-count", HTMLElement), recordingsTotal > 0 ? many("page.recordingCount", recordingsTotal) : "");
  byId("all-recordings", HTMLElement).hidden = recordings.length === 0;
  const none = byId("no-recordings", HTMLElement);
  none.hidden = recordings.length > 0;
  setText(none, t(overview?.records === false ? "recordings.off" : "home.records"));
  byId("more-recordings", HTMLButtonElement).hidden = recordings.length <= recordingsShown;
}

function showPublish() {
  if (overview === null) return;
  const name = nameInput.value.trim();
  const valid = isStreamName(name);
  byId("name-hint", HTMLElement).hidden = valid;
  nameInput.setAttribute("aria-invalid", String(!valid));
  byId("open-warning", HTMLElement).hidden = overview.publishKeyRequired || !(overview.rtmpPort || overview.srtPort || overview.webRTCPort);
  const wanted = `${name} ${overview.rtmpPort} ${overview.srtPort} ${overview.webRTCPort} ${overview.publishKeyRequired}`;
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
