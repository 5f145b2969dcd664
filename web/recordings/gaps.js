/** Texts for the gaps of a recording. */

import { many, t } from "../strings/strings.js";
import { make } from "../ui/dom.js";
import * as format from "../ui/format.js";

/** @typedef {import("../api/api.js").Gap} Gap */

/** Maximum number of gaps that are listed one by one. */
const LISTED = 20;

/** @param {Gap[]} gaps At least one. @returns {string} "2 gaps, 3.4 s missing" */
export function gapSummary(gaps) {
  const missing = gaps.reduce((sum, gap) => sum + gap.seconds, 0);
  return many("gaps.summary", gaps.length, { length: format.seconds(missing) });
}

/**
 * Shows the gaps in a list. The list is built anew only when they change.
 * @param {HTMLElement} list
 * @param {Gap[]} gaps
 * @param {((time: number) => void) | null} seek Makes each gap a button that seeks there, in seconds of the recording.
 */
export function showGaps(list, gaps, seek = null) {
  list.hidden = gaps.length === 0;
  const text = JSON.stringify(gaps);
  if (list.dataset.shown === text) return;
  list.dataset.shown = text;
  const items = gaps.slice(0, LISTED).map((gap) => make("li", "", place(gap, seek), ` ${words(gap)}`));
  if (gaps.length > LISTED) items.push(make("li", "", many("gaps.more", gaps.length - LISTED)));
  list.replaceChildren(...items);
}

/** @param {Gap} gap */
const words = (gap) => t("gaps.missing", { length: format.seconds(gap.seconds), reason: gap.reason });

/** @param {Gap} gap @param {((time: number) => void) | null} seek */
function place(gap, seek) {
  const time = format.duration(gap.at);
  if (seek === null) return make("strong", "", time);
  const button = /** @type {HTMLButtonElement} */ (make("button", "gap-place", time));
  button.type = "button";
  button.setAttribute("aria-label", t("gaps.goTo", { time }));
  button.addEventListener("click", () => seek(gap.at));
  return button;
}
