/**
 * The streams of the home page: searched, sorted, and as many cards as have been scrolled to. A card is brought up to date when it
 * comes into view, so ten thousand streams cost what a screen of them costs.
 */

import { language, many, t } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";
import { LivePictures } from "./live-pictures.js";
import { streamCard } from "./stream-card.js";

/** Cards that are added at a time. */
const PAGE = 48;
/** From this many streams on, cards are small. */
const MANY = 13;
/** From this many streams on, the list can be searched and sorted. */
const SEVERAL = 2;
const TYPING_MILLISECONDS = 120;

/** @typedef {import("../api/api.js").Stream} Stream */
/** @typedef {ReturnType<typeof streamCard>} Card */

const RANKS = /** @type {Record<string, number>} */ ({ live: 0, starting: 1, reconnecting: 2, offAir: 3, ended: 4 });
const { compare } = new Intl.Collator(language, { numeric: true });
/** @param {Stream} stream */
const titleOf = (stream) => stream.title || stream.name;
/** @param {Stream} a @param {Stream} b */
const byTitle = (a, b) => compare(titleOf(a), titleOf(b)) || (a.name < b.name ? -1 : 1);
/** @param {Stream} a @param {Stream} b */
const byState = (a, b) => (RANKS[a.state] ?? 5) - (RANKS[b.state] ?? 5) || byTitle(a, b);

/** @param {Stream} stream @returns {number} The lower, the worse. */
export function troubleOf(stream) {
  if (stream.recording?.state === "failed") return 0;
  if (stream.state === "reconnecting") return 1;
  return stream.warnings.length > 0 ? 2 : 3;
}

/** @type {Record<string, (a: Stream, b: Stream) => number>} */
const ORDERS = {
  state: byState,
  problems: (a, b) => troubleOf(a) - troubleOf(b) || byState(a, b),
  name: byTitle,
  viewers: (a, b) => b.viewers - a.viewers || byState(a, b),
  newest: (a, b) => (a.startedAt < b.startedAt ? 1 : a.startedAt > b.startedAt ? -1 : byTitle(a, b)),
};

export class StreamList {
  #list = byId("streams", HTMLElement);
  #tools = byId("stream-tools", HTMLElement);
  #search = byId("stream-search", HTMLInputElement);
  #sort = byId("stream-sort", HTMLSelectElement);
  #more = byId("more-streams", HTMLButtonElement);
  #none = byId("no-match", HTMLElement);
  /** @type {Stream[]} */
  #streams = [];
  /** @type {Map<string, Stream>} */
  #byName = new Map();
  /** @type {Map<string, Card>} */
  #cards = new Map();
  /** @type {Map<Element, Card>} */
  #ofElement = new Map();
  /** @type {Set<Card>} */
  #inView = new Set();
  #limit = PAGE;
  #operates = false;
  #typing = 0;
  /** Whether the reader chose the order. */
  #isChosen = false;
  #pictures = new LivePictures((name) => hasPicture(this.#byName.get(name)));
  #watcher = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "100px" });

  constructor() {
    const asked = new URLSearchParams(location.search);
    this.#search.value = asked.get("q") ?? "";
    const sort = asked.get("sort") ?? "";
    if (sort in ORDERS) [this.#sort.value, this.#isChosen] = [sort, true];
    this.#search.addEventListener("input", () => {
      clearTimeout(this.#typing);
      this.#typing = setTimeout(() => this.#restart(), TYPING_MILLISECONDS);
    });
    this.#sort.addEventListener("change", () => {
      this.#isChosen = true;
      this.#restart();
    });
    this.#tools.addEventListener("submit", (event) => event.preventDefault());
    this.#more.addEventListener("click", () => this.#extend());
    new IntersectionObserver((entries) => { if (entries.some((e) => e.isIntersecting)) this.#extend(); }, { rootMargin: "600px" })
      .observe(this.#more);
  }

  /** @param {Stream[]} streams @param {boolean} operates Whether the tools of operators are shown. */
  show(streams, operates) {
    this.#streams = streams;
    this.#byName = new Map(streams.map((stream) => [stream.name, stream]));
    if (operates !== this.#operates) {
      this.#operates = operates;
      if (!this.#isChosen) this.#sort.value = operates ? "problems" : "state";
      for (const card of this.#cards.values()) card.isStale = true;
    }
    this.#tools.hidden = streams.length < SEVERAL;
    for (const option of this.#sort.options) option.hidden = option.value === "problems" && !operates;
    this.#arrange();
  }

  #restart() {
    this.#limit = PAGE;
    const query = new URLSearchParams();
    if (this.#search.value.trim() !== "") query.set("q", this.#search.value.trim());
    if (this.#isChosen) query.set("sort", this.#sort.value);
    const text = query.toString();
    history.replaceState(null, "", text === "" ? location.pathname : `?${text}`);
    this.#arrange();
  }

  #extend() {
    if (this.#more.hidden) return;
    this.#limit += PAGE;
    this.#arrange();
  }

  /** Puts the cards that are wanted into the list, in order. Cards that stay keep their focus and selection. */
  #arrange() {
    const words = this.#search.value.trim().toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length === 0 || this.#tools.hidden ? [...this.#streams] : this.#streams.filter((s) => matches(s, words));
    found.sort(ORDERS[this.#sort.value] ?? byState);
    const shown = found.slice(0, this.#limit);
    const names = new Set(shown.map((s) => s.name));
    for (const [name, card] of this.#cards) if (!names.has(name)) this.#drop(name, card);
    shown.forEach((stream, position) => {
      const card = this.#cards.get(stream.name) ?? this.#add(stream);
      if (this.#list.children[position] !== card.element) {
        this.#list.insertBefore(card.element, this.#list.children[position] ?? null);
      }
      card.isStale = true;
    });
    for (const card of this.#inView) this.#bring(card);
    this.#list.dataset.many = String(this.#streams.length >= MANY);
    this.#more.hidden = found.length <= this.#limit;
    this.#none.hidden = found.length > 0 || this.#streams.length === 0;
    const live = this.#streams.filter((s) => s.state === "live").length;
    const isNarrowed = found.length < this.#streams.length;
    setText(byId("streams-count", HTMLElement), this.#streams.length === 0 ? ""
      : isNarrowed ? t("home.found", { found: found.length, all: this.#streams.length }) : many("home.live", live));
  }

  /** @param {Stream} stream */
  #add(stream) {
    const card = streamCard(stream.name);
    this.#cards.set(stream.name, card);
    this.#ofElement.set(card.element, card);
    card.update(stream, this.#operates);
    this.#watcher.observe(card.element);
    return card;
  }

  /** @param {string} name @param {Card} card */
  #drop(name, card) {
    this.#watcher.unobserve(card.element);
    this.#pictures.hide(card.element);
    this.#inView.delete(card);
    this.#ofElement.delete(card.element);
    this.#cards.delete(name);
    card.element.remove();
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #see(entries) {
    for (const { target, isIntersecting } of entries) {
      const card = this.#ofElement.get(target);
      if (card === undefined) continue;
      if (isIntersecting) {
        this.#inView.add(card);
        this.#bring(card);
        this.#pictures.show(target, card.picture);
      } else {
        this.#inView.delete(card);
        this.#pictures.hide(target);
      }
    }
  }

  /** @param {Card} card */
  #bring(card) {
    const stream = this.#byName.get(card.picture.name);
    if (!card.isStale || stream === undefined) return;
    card.isStale = false;
    card.update(stream, this.#operates);
  }
}

/** @param {Stream | undefined} stream */
const hasPicture = (stream) =>
  stream !== undefined && stream.state === "live" && stream.tracks.some((track) => track.kind === "video");

/** @param {Stream} stream @param {string[]} words In lower case. */
function matches(stream, words) {
  const text = `${stream.name} ${stream.title ?? ""} ${stream.description ?? ""}`.toLocaleLowerCase();
  return words.every((word) => text.includes(word));
}

