/** One recording in the gallery: its thumbnail, its data and its buttons. */

import { t } from "../strings/strings.js";
import { icon, make, setIcon, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { isOwnFile } from "../ui/links.js";
import { gapSummary } from "./gaps.js";
import { playRecording } from "./play-recording.js";

/** @typedef {(recording: import("../api/api.js").Recording) => void} Act */

/**
 * @param {{remove: Act, restore: Act, protect: Act}} actions
 * @param {import("./selection.js").Selection} selection
 */
export function galleryCard(actions, selection) {
  const image = /** @type {HTMLImageElement} */ (make("img"));
  const length = make("span", "gallery-length");
  const thumbnail = /** @type {HTMLButtonElement} */ (make("button", "gallery-thumbnail", icon("audio"), image, length));
  const title = make("h2", "gallery-name");
  const choose = /** @type {HTMLInputElement} */ (make("input", "gallery-choose"));
  const annotation = make("p", "gallery-annotation");
  const badges = make("span", "gallery-badges");
  const when = make("p", "gallery-when");
  const note = make("p", "gallery-note");
  const download = /** @type {HTMLAnchorElement} */ (make("a", "button quiet", icon("download"), make("span", "", t("recording.download"))));
  const protect = button("lock");
  const remove = button("bin");
  const restore = button("restore", t("recording.restore"));
  const element = make("li", "gallery-item panel", thumbnail, choose,
    make("div", "gallery-text", make("div", "gallery-head", title, badges), when, annotation, note),
    make("div", "gallery-actions", download, restore, protect, remove));
  /** @type {import("../api/api.js").Recording | null} */
  let shown = null;
  let couldChange = false;
  choose.type = "checkbox";
  choose.addEventListener("change", () => { if (shown) selection.set(shown, choose.checked); });
  title.dir = annotation.dir = "auto";
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
      choose.checked = selection.has(recording);
      if (recording === shown && mayChange === couldChange) return;
      couldChange = mayChange;
      const label = `${recording.name ?? recording.stream}, ${format.moment(recording.startedAt)}`;
      choose.setAttribute("aria-label", t("selection.choose", { recording: label }));
      const isDeleted = recording.deletedAt !== null && recording.deletedAt !== undefined;
      const isPlayable = isOwnFile(recording.url);
      if (isOwnFile(recording.thumbnail) && shown?.thumbnail !== recording.thumbnail) {
        image.hidden = false;
        image.src = recording.thumbnail;
      }
      if (!isOwnFile(recording.thumbnail)) image.hidden = true;
      shown = recording;
      setText(length, format.duration(recording.seconds));
      setText(title, recording.name ? t("recording.named", { name: recording.name, stream: recording.stream }) : recording.stream);
      setText(when, `${format.moment(recording.startedAt)} · ${format.size(recording.bytes)}`);
      showBadges(badges, recording, isDeleted);
      const problems = problemsOf(recording);
      annotation.hidden = !recording.note;
      setText(annotation, recording.note ?? "");
      note.hidden = problems === "";
      setText(note, problems);
      thumbnail.disabled = !isPlayable;
      thumbnail.setAttribute("aria-label", t("recording.playOf", { recording: label }));
      download.hidden = !isPlayable;
      if (isPlayable) download.href = `${recording.url}?download`;
      download.setAttribute("aria-label", t("recording.downloadOf", { recording: label }));
      restore.hidden = !isDeleted || !mayChange;
      restore.setAttribute("aria-label", t("recording.restoreOf", { recording: label }));
      protect.hidden = isDeleted || !mayChange || !isPlayable;
      setIcon(protect, recording.protected ? "unlock" : "lock");
      protect.title = t(recording.protected ? "recording.unprotectHint" : "recording.protectHint");
      protect.setAttribute("aria-label", t(recording.protected ? "recording.unprotectOf" : "recording.protectOf", { recording: label }));
      remove.hidden = isDeleted || !mayChange || recording.protected;
      remove.title = t("recording.delete");
      remove.setAttribute("aria-label", t("recording.deleteOf", { recording: label }));
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
  if (isDeleted) words.push([t("state.deleted"), "ended"]);
  const finishing = recording.finishing ?? null;
  if (finishing !== null) words.push([t("state.finishingBy", { share: Math.floor(finishing * 100) }), "completed"]);
  else if (recording.state === "failed") words.push([t("state.interrupted"), "failed"]);
  if (recording.salvaged) words.push([t("state.salvaged"), "completed"]);
  if (recording.protected) words.push([t("state.protected"), "completed"]);
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
function problemsOf(recording) {
  const problems = [];
  if (recording.state === "failed" && recording.reason) problems.push(recording.reason);
  const gaps = recording.gaps ?? [];
  if (gaps.length > 0) problems.push(`${gapSummary(gaps)}: ${gaps[0].reason}`);
  return problems.join(" · ");
}
