/**
 * Buttons whose doing cannot be taken back ask once more: a second click within some seconds means it. The second half of
 * a double click does not, nor does a key that is held down.
 */

import { announce, setText } from "./dom.js";

const SURE_MILLISECONDS = 4000;
/** A click that comes sooner after the one before it was made before the question could be read. */
const READ_MILLISECONDS = 600;

/**
 * @param {HTMLButtonElement} button Its last child element has the word, or it has no child but that.
 * @param {() => void} act
 * @param {() => boolean} [isGrave] Whether it has to be asked now.
 */
export function confirmButton(button, act, isGrave = () => true) {
  const place = button.lastElementChild ?? button;
  let word = place.textContent ?? "";
  let timer = 0;
  let clickedAt = -Infinity;
  const calm = () => {
    clearTimeout(timer);
    button.dataset.sure = "";
    setText(place, word);
  };
  button.addEventListener("click", (event) => {
    const isAsked = button.dataset.sure === "true";
    const isHasty = event.detail > 1 || event.timeStamp - clickedAt < READ_MILLISECONDS;
    clickedAt = performance.now();
    if (isAsked && isGrave() && isHasty) return;
    calm();
    if (isAsked || !isGrave()) return act();
    button.dataset.sure = "true";
    setText(place, "Really?");
    announce(`${button.getAttribute("aria-label") ?? word}: press again if you mean it`);
    timer = setTimeout(calm, SURE_MILLISECONDS);
  });
  return {
    /** @param {string} text What the button says while it does not ask. */
    setWord(text) {
      word = text;
      if (button.dataset.sure === "true" && !isGrave()) calm();
      if (button.dataset.sure !== "true") setText(place, text);
    },
  };
}
