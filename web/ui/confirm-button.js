/**
 * Buttons whose doing cannot be taken back ask once more: a second click within some seconds means it. The second half of
 * a double click does not, nor does a key that is held down.
 */

import { announce, setText } from "./dom.js";

const CONFIRM_MILLISECONDS = 4000;
/** A click that comes sooner after the one before it was made before the question could be read. */
const READ_MILLISECONDS = 600;

/**
 * @param {HTMLButtonElement} button Its last child element has the word, or it has no child but that.
 * @param {() => void} act
 * @param {() => boolean} [needsConfirmation] Whether it has to be asked now.
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
    setText(place, "Really?");
    announce(`${button.getAttribute("aria-label") ?? word}: press again to confirm`);
    timer = setTimeout(reset, CONFIRM_MILLISECONDS);
  });
  return {
    /** @param {string} text What the button says while it does not ask. */
    setWord(text) {
      word = text;
      if (button.dataset.confirming === "true" && !needsConfirmation()) reset();
      if (button.dataset.confirming !== "true") setText(place, text);
    },
  };
}
