/** One recording in the gallery: its thumbnail, its data and its buttons. */

import { icon, make, setIcon, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { isOwnFile } from "../ui/links.js";
import { gapSummary } from "./gaps.js";
import { playRecording } from "./play-recording.js";

/** @typedef {(recording: import("../api/api.js").Recording) => void} Act */

/** @param {{remove: Act, restore: Act, protect: Act}} actions */
export function galleryCard(actions) {
  const image = /** @type {HTMLImageElement} */ (make("img"));
  const length = make("span", "gallery-length");
  const thumbnail = /** @type {HTMLButtonElement} */ (make("button", "gallery-thumbnail", icon("audio"), image, length));
  const title = make("h2", "gallery-name");
  const badges = make("span", "gallery-badges");
  const when = make("p", "gallery-when");
  const note = make("p", "gallery-note");
  const download = /** @type {HTMLAnchorElement} */ (make("a", "button quiet", icon("download"), make("span", "", "Download")));
  const protect = button("lock");
  const remove = button("bin");
  const restore = button("restore", "Restore");
  const element = make("li", "gallery-item panel", thumbnail,
    make("div", "gallery-text", make("div", "gallery-head", title, badges), when, note),
    make("div", "gallery-actions", download, restore, protect, remove));
  /** @type {import("../api/api.js").Recording | null} */
  let shown = null;
  let couldChange = false;
  thumbnail.type = "button";
  image.loading = "lazy";
  image.alt = "";
  image.addEventListener("error", () => { image.hidden = true; });
  const on = (/** @type {Element} */ target, /** @type {Act} */ act) =>
    target.addEventListener("click", () => { if (shown) act(shown); });
  on(thumbnail, playRecording);
  on(protect, actions.protect);
  on(remove, actions.remove);
  on(restore, actions.restore);

  return {
    element,
    /** @param {import("../api/api.js").Recording} recording @param {boolean} mayChange */
    update(recording, mayChange) {
      if (recording === shown && mayChange === couldChange) return;
      couldChange = mayChange;
      const label = `${recording.stream}, ${format.moment(recording.startedAt)}`;
      const isDeleted = recording.deletedAt !== null && recording.deletedAt !== undefined;
      const isPlayable = isOwnFile(recording.url);
      if (isOwnFile(recording.thumbnail) && shown?.thumbnail !== recording.thumbnail) {
        image.hidden = false;
        image.src = recording.thumbnail;
      }
      if (!isOwnFile(recording.thumbnail)) image.hidden = true;
      shown = recording;
      setText(length, format.duration(recording.seconds));
      setText(title, recording.name ? `${recording.name} (${recording.stream})` : recording.stream);
      setText(when, `${format.moment(recording.startedAt)} · ${format.size(recording.bytes)}`);
      showBadges(badges, recording, isDeleted);
      const remarks = remarksOn(recording);
      note.hidden = remarks === "";
      setText(note, remarks);
      thumbnail.disabled = !isPlayable;
      thumbnail.setAttribute("aria-label", `Play ${label}`);
      download.hidden = !isPlayable;
      if (isPlayable) download.href = `${recording.url}?download`;
      download.setAttribute("aria-label", `Download ${label}`);
      restore.hidden = !isDeleted || !mayChange;
      restore.setAttribute("aria-label", `Restore ${label}`);
      protect.hidden = isDeleted || !mayChange || !isPlayable;
      setIcon(protect, recording.protected ? "unlock" : "lock");
      const word = recording.protected ? "Unprotect" : "Protect";
      protect.title = recording.protected ? "Unprotect: allow deletion" : "Protect from deletion";
      protect.setAttribute("aria-label", `${word} ${label}`);
      remove.hidden = isDeleted || !mayChange || recording.protected;
      remove.title = "Delete";
      remove.setAttribute("aria-label", `Delete ${label}`);
    },
  };
}

/** @param {string} symbol @param {string} [word] */
function button(symbol, word) {
  const element = /** @type {HTMLButtonElement} */ (make("button", "button quiet", icon(symbol)));
  if (word) element.append(make("span", "", word));
  element.type = "button";
  return element;
}

/** @param {Element} place @param {import("../api/api.js").Recording} recording @param {boolean} isDeleted */
function showBadges(place, recording, isDeleted) {
  const words = [];
  if (isDeleted) words.push(["Deleted", "ended"]);
  const finishing = recording.finishing ?? null;
  if (finishing !== null) words.push([`Finishing, ${Math.floor(finishing * 100)} %`, "completed"]);
  else if (recording.state === "failed") words.push(["Interrupted", "failed"]);
  if (recording.salvaged) words.push(["Salvaged", "completed"]);
  if (recording.protected) words.push(["Protected", "completed"]);
  const text = words.join();
  if (place instanceof HTMLElement && place.dataset.words !== text) {
    place.dataset.words = text;
    place.replaceChildren(...words.map(([word, state]) => {
      const badge = make("span", "badge", word);
      badge.dataset.state = state;
      return badge;
    }));
  }
}

/** @param {import("../api/api.js").Recording} recording */
function remarksOn(recording) {
  const remarks = [];
  if (recording.state === "failed" && recording.reason) remarks.push(recording.reason);
  const gaps = recording.gaps ?? [];
  if (gaps.length > 0) remarks.push(`${gapSummary(gaps)}: ${gaps[0].reason}`);
  return remarks.join(" · ");
}
