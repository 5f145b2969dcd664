/** Keyboard shortcuts of the watch page. */

import { byId } from "./dom.js";

const VOLUME_STEP = 0.1;
/** Seconds. */
const ARROW_STEP = 5;
const LETTER_STEP = 10;

/** Elements that use keys themselves. */
const CONTROLS = "button, a, summary, input, select, textarea, code, dialog";

/**
 * @param {import("./controls.js").Controls} controls
 * @param {import("./captions-menu.js").CaptionsMenu} captions
 */
export function listenToKeys(controls, captions) {
  const player = byId("player", HTMLElement);
  const help = byId("help", HTMLDialogElement);
  byId("help-open", HTMLButtonElement).addEventListener("click", () => help.showModal());
  byId("help-close", HTMLButtonElement).addEventListener("click", () => help.close());

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey) return;
    const target = /** @type {Element} */ (event.target);
    if (help.open && event.key !== "?" || document.querySelector("dialog[open]:not(#help)") !== null) return;
    const onControl = target.closest(CONTROLS) !== null;
    const onSeekBar = target.id === "seek";
    const onPlayer = player.contains(target) || document.fullscreenElement !== null;
    switch (event.key) {
      case " ":
        if (onControl && !onSeekBar) return;
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
      case "i": byId("info", HTMLButtonElement).click(); break;
      case "?":
        if (help.open) help.close();
        else help.showModal();
        break;
      case "ArrowLeft": case "ArrowRight":
        if (onControl && !onSeekBar && !target.closest("button")) return;
        controls.step(event.key === "ArrowLeft" ? -ARROW_STEP : ARROW_STEP);
        break;
      // These keys scroll the page, except with the focus on the player or in full screen.
      case "Home": case "End":
        if (!onPlayer) return;
        if (event.key === "Home") controls.goToStart();
        else controls.goLive();
        break;
      case "ArrowUp": case "ArrowDown":
        if (!onPlayer || target instanceof HTMLInputElement && !onSeekBar || target instanceof HTMLSelectElement) return;
        controls.changeVolume(event.key === "ArrowUp" ? VOLUME_STEP : -VOLUME_STEP);
        break;
      default: return;
    }
    event.preventDefault();
  });
}
