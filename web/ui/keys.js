/** Keyboard shortcuts of a player: of the watch page, or of the one player that has the focus. */

import { byId } from "./dom.js";

const VOLUME_STEP = 0.1;
/** Seconds. */
const ARROW_STEP = 5;
const LETTER_STEP = 10;

/** Elements that use keys themselves. */
const CONTROLS = "button, a, summary, input, select, textarea, code, dialog";

/**
 * The shortcuts of the watch page, wherever on it the focus is.
 * @param {import("./controls.js").Controls} controls
 * @param {import("./captions-menu.js").CaptionsMenu} captions
 */
export function listenToKeys(controls, captions) {
  const player = byId("player", HTMLElement);
  const help = byId("help", HTMLDialogElement);
  byId("help-open", HTMLButtonElement).addEventListener("click", () => help.showModal());
  byId("help-close", HTMLButtonElement).addEventListener("click", () => help.close());

  document.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    if (help.open && event.key !== "?" || document.querySelector("dialog[open]:not(#help)") !== null) return;
    const onPlayer = player.contains(target) || document.fullscreenElement !== null;
    if (take(event, controls, captions, onPlayer) || isOfSystem(event)) return;
    switch (event.key) {
      case "i": byId("info", HTMLButtonElement).click(); break;
      case "?":
        if (help.open) help.close();
        else help.showModal();
        break;
      default: return;
    }
    event.preventDefault();
  });
}

/**
 * The shortcuts of one player, while the focus is on it.
 * @param {ShadowRoot} root
 * @param {import("./controls.js").Controls} controls
 * @param {import("./captions-menu.js").CaptionsMenu} captions
 */
export function listenToFocusedKeys(root, controls, captions) {
  root.addEventListener("keydown", (event) => { take(/** @type {KeyboardEvent} */ (event), controls, captions, true); });
}

/** @param {KeyboardEvent} event Whether it is the browser's or the system's own, or has been taken. */
const isOfSystem = (event) => event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey;

/**
 * @param {KeyboardEvent} event
 * @param {import("./controls.js").Controls} controls
 * @param {import("./captions-menu.js").CaptionsMenu} captions
 * @param {boolean} onPlayer
 * @returns {boolean} Whether the key was one of a player's, and has been obeyed.
 */
function take(event, controls, captions, onPlayer) {
  if (isOfSystem(event)) return false;
  const target = /** @type {Element} */ (event.target);
  const onControl = target.closest(CONTROLS) !== null;
  const onSeekBar = target.id === "seek";
  switch (event.key) {
    case " ":
      if (onControl && !onSeekBar) return false;
      controls.togglePlay();
      break;
    case "k": controls.togglePlay(); break;
    case "m": controls.toggleMute(); break;
    case "j": controls.step(-LETTER_STEP); break;
    case "l": controls.step(LETTER_STEP); break;
    case "L": controls.goLive(); break;
    case "f": controls.toggleFullScreen(); break;
    case "p": controls.togglePictureInPicture(); break;
    case "c": captions.toggle(); break;
    case "ArrowLeft": case "ArrowRight":
      if (onControl && !onSeekBar && !target.closest("button")) return false;
      controls.step(event.key === "ArrowLeft" ? -ARROW_STEP : ARROW_STEP);
      break;
    // These keys scroll the page, except with the focus on the player or in full screen.
    case "Home": case "End":
      if (!onPlayer) return false;
      if (event.key === "Home") controls.goToStart();
      else controls.goLive();
      break;
    case "ArrowUp": case "ArrowDown":
      if (!onPlayer || target instanceof HTMLInputElement && !onSeekBar || target instanceof HTMLSelectElement) return false;
      controls.changeVolume(event.key === "ArrowUp" ? VOLUME_STEP : -VOLUME_STEP);
      break;
    default: return false;
  }
  event.preventDefault();
  return true;
}
