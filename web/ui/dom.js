/** Helpers that build pages from text, never from markup. */

import { t } from "../strings/strings.js";

const ICONS = new URL("icons.svg", import.meta.url).pathname;

/** @typedef {Document | ShadowRoot} Root The tree that a player's elements are in: a page, or one player of several. */

/** @template {Element} T @param {string} id @param {new () => T} type @param {Root} root @returns {T} */
export function byId(id, type, root = document) {
  const element = root.getElementById(id);
  if (!(element instanceof type)) throw new Error(`no #${id} on this page`);
  return element;
}

/**
 * @param {string} tag
 * @param {string} className
 * @param {(Node | string)[]} content
 */
export function make(tag, className = "", ...content) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...content);
  return element;
}

/**
 * Changes the text only if it differs, so that screen readers and selections are not disturbed.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * @param {string} text An operator's or publisher's.
 * @returns {string} The text without characters that turn the direction of what follows, and without control characters.
 */
export const plain = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069\p{Cc}]/gu, "");

/** @param {string} name A symbol of icons.svg. @returns {SVGSVGElement} */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `${ICONS}#${name}`);
  svg.append(use);
  return svg;
}

/** @param {Element} button @param {string} name A symbol from where its present icon is. */
export function setIcon(button, name) {
  const use = button.querySelector("use");
  const present = use?.getAttribute("href") ?? "";
  const href = present.replace(/(#(?:icon-)?).*$/, `$1${name}`);
  if (use && present !== href) use.setAttribute("href", href);
}

/** @param {string} text Text for screen readers; it does not interrupt them. @param {Root} root */
export function announce(text, root = document) {
  const region = root.getElementById("announcer");
  if (region) setText(region, text);
}

/**
 * A row with a label, a text, and a button that copies the text.
 * @param {string} label
 * @param {string} text
 */
export function copyRow(label, text) {
  const button = /** @type {HTMLButtonElement} */ (make("button", "button quiet copy-button", icon("copy")));
  const word = make("span", "", t("copy.copy"));
  button.append(word);
  button.type = "button";
  button.setAttribute("aria-label", t("copy.of", { label }));
  const code = make("code", "", text);
  code.tabIndex = 0;
  button.addEventListener("click", async () => {
    const copied = await copyText(text, code);
    setText(word, t(copied ? "copy.done" : "copy.press"));
    setIcon(button, copied ? "check" : "copy");
    announce(t(copied ? "copy.doneOf" : "copy.pressOf", { label }));
    setTimeout(() => { setText(word, t("copy.copy")); setIcon(button, "copy"); }, 2000);
  });
  return make("div", "copy-row", make("span", "copy-label", label), make("div", "copy-text", code), button);
}

/** @param {string} text @param {Element} shown The element with the text; it is selected if copying is not allowed. */
export async function copyText(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP from another machine there is no clipboard API. The older way needs a selection.
    const range = document.createRange();
    range.selectNodeContents(shown);
    const selection = getSelection();
    selection?.removeAllRanges();
    selection?.addRange(range);
    const copied = document.execCommand("copy");
    if (copied) selection?.removeAllRanges();
    return copied;
  }
}
