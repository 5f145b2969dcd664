/** Puts the texts of the page into its markup. The scripts of pages import it first. */

import { direction, language, t } from "../strings/strings.js";

/** Attributes that hold texts, by the data attribute that names their key. */
const ATTRIBUTES = { label: "aria-label", hint: "title", placeholder: "placeholder" };

/** @param {ParentNode} root */
function translate(root) {
  for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll("[data-text]"))) {
    element.textContent = t(element.dataset.text ?? "");
  }
  for (const [name, attribute] of Object.entries(ATTRIBUTES)) {
    for (const element of /** @type {NodeListOf<HTMLElement>} */ (root.querySelectorAll(`[data-${name}]`))) {
      element.setAttribute(attribute, t(element.dataset[name] ?? ""));
    }
  }
}

document.documentElement.lang = language;
document.documentElement.dir = direction;
translate(document);
