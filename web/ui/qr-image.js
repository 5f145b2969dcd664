/** A text as a QR code to scan, dark on light in both schemes. */

import { qrCode } from "../media/qr-code.js";
import { t } from "../strings/strings.js";
import { make } from "./dom.js";

/** Light modules around the code. (ISO/IEC 18004 §6.3.8) */
const QUIET = 4;
const SVG = "http://www.w3.org/2000/svg";

/** @param {string} label What it leads to. @param {string} text @returns {HTMLElement | null} Null if the text is too long. */
export function qrImage(label, text) {
  const modules = qrCode(text);
  if (modules === null) return null;
  const size = modules.length + 2 * QUIET;
  const svg = document.createElementNS(SVG, "svg");
  const path = document.createElementNS(SVG, "path");
  svg.setAttribute("viewBox", `0 0 ${size} ${size}`);
  svg.setAttribute("shape-rendering", "crispEdges");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", t("share.qr", { label }));
  path.setAttribute("d", modules.flatMap((row, y) => row.flatMap((isDark, x) =>
    isDark ? [`M${x + QUIET} ${y + QUIET}h1v1h-1z`] : [])).join(""));
  svg.append(path);
  return make("figure", "qr-code", svg, make("figcaption", "", label));
}
