/** The publish key: typed once. It is in no address, and kept beyond this page only where that was asked for: for this tab. */

import { byId } from "../ui/dom.js";

const KEPT = "weir.publishKey";

export class KeyField {
  #row = byId("key-row", HTMLElement);
  #field = byId("key", HTMLInputElement);
  #keep = byId("key-keep", HTMLInputElement);

  constructor() {
    const kept = sessionStorage.getItem(KEPT);
    this.#field.value = kept ?? "";
    this.#keep.checked = kept !== null;
    this.#keep.addEventListener("change", () => this.keep());
  }

  get key() { return this.#field.value.trim(); }

  /** Keeps the key for this tab, or forgets it. */
  keep() {
    if (this.#keep.checked && this.key !== "") sessionStorage.setItem(KEPT, this.key);
    else sessionStorage.removeItem(KEPT);
  }

  /** @param {boolean} isNeeded */
  show(isNeeded) { this.#row.hidden = !isNeeded; }

  ask() {
    this.#row.hidden = false;
    this.#field.focus();
  }
}
