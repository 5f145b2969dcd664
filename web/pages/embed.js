/**
 * The page with the player alone, for frames of other pages. Its query sets the player's attributes: `autoplay=0`, `muted=1`,
 * `controls=0`, `engine=hls`. The page around the frame is told the player's phases.
 */

import "../ui/page-strings.js";
import "../player/weir-player.js";
import { byId } from "../ui/dom.js";

const query = new URLSearchParams(location.search);
const player = document.createElement("weir-player");
player.setAttribute("src", location.pathname);
if (query.get("autoplay") !== "0") player.setAttribute("autoplay", "");
if (query.get("muted") === "1") player.setAttribute("muted", "");
if (query.get("controls") === "0") player.setAttribute("controls", "none");
const engine = query.get("engine") ?? query.get("player");
if (engine !== null) player.setAttribute("engine", engine);
player.addEventListener("phasechange", (event) => {
  const { phase } = /** @type {CustomEvent} */ (event).detail;
  // Only pages that may embed this one get here (frame-ancestors).
  if (parent !== window) parent.postMessage({ weir: { phase } }, "*");
});
const heading = document.createElement("h1");
heading.className = "visually-hidden";
heading.dir = "auto";
heading.textContent = document.title.replace(/ · weir$/, "");
byId("place", HTMLElement).append(heading, player);
