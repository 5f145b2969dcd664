/**
 * Buttons for actions that cannot be undone. The action needs a second click within a few seconds. The second half of a
 * double click does not count, and neither does a key that is held down.
 */

import { t } from "../strings/strings.js";
import { announce, setText } from "./dom.js";

const CONFIRM_MILLISECONDS = 4000;
/** A second click that comes sooner was made before the question could be read. */
const READ_MILLISECONDS = 600;

/**
 * @param {HTMLButtonElement} button Its text is in its last child element, or it has no child elements.
 * @param {() => void} act
 * @param {() => boolean} [needsConfirmation] Whether the action needs a confirmation now.
 */
export function confirmButton(button, act, needsConfirmation = () => true) {
  const place = button.lastElementChild ?? button;
  let word = place.textContent ?? "";
  let timer = 0;
  let clickedAt = -Infinity;
  const reset = () => {
    clearTimeout(timer);
    button.dataset.confirming = "";
    setText(place, word);
  };
  button.addEventListener("click", (event) => {
    const isAsked = button.dataset.confirming === "true";
    const isTooSoon = event.detail > 1 || event.timeStamp - clickedAt < READ_MILLISECONDS;
    clickedAt = performance.now();
    if (isAsked && needsConfirmation() && isTooSoon) return;
    reset();
    if (isAsked || !needsConfirmation()) return act();
    button.dataset.confirming = "true";
    setText(place, t("confirm.really"));
    announce(t("confirm.again", { action: button.getAttribute("aria-label") ?? word }));
    timer = setTimeout(reset, CONFIRM_MILLISECONDS);
  });
  return {
    /** @param {string} text The text of the button while it does not ask for confirmation. */
    setWord(text) {
      word = text;
      if (button.dataset.confirming === "true" && !needsConfirmation()) reset();
      if (button.dataset.confirming !== "true") setText(place, text);
    },
  };
}
