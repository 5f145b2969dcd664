/** The dialog for the admin token, and the buttons that open it. */

import { forgetToken, hasToken, useToken } from "../api/admin.js";
import { t } from "../strings/strings.js";
import { make, setText } from "../ui/dom.js";

export class AdminDialog {
  #openers;
  #changed;
  #dialog = /** @type {HTMLDialogElement} */ (make("dialog", "admin-dialog"));
  #field = /** @type {HTMLInputElement} */ (make("input"));
  #error = make("p", "warning");

  /**
   * @param {HTMLButtonElement[]} openers
   * @param {() => void} changed Called when a token was stored or removed.
   */
  constructor(openers, changed) {
    this.#openers = openers;
    this.#changed = changed;
    this.#build();
    for (const opener of openers) {
      opener.addEventListener("click", () => {
        if (!hasToken()) return this.open();
        forgetToken();
        this.#end();
      });
    }
    this.refresh();
  }

  /** Updates the text of the buttons. */
  refresh() {
    for (const opener of this.#openers) setText(opener, t(hasToken() ? "admin.signOut" : "admin.signIn"));
  }

  open() {
    this.#say(null);
    this.#field.value = "";
    this.#dialog.showModal();
  }

  #end() {
    this.#dialog.close();
    this.refresh();
    this.#changed();
  }

  /** @param {string | null} problem */
  #say(problem) {
    this.#error.toggleAttribute("hidden", problem === null);
    setText(this.#error, problem ?? "");
  }

  #build() {
    const title = make("h2", "", t("admin.title"));
    const label = /** @type {HTMLLabelElement} */ (make("label", "", t("admin.token")));
    const use = button(t("admin.signIn"));
    const cancel = button(t("admin.cancel"), "quiet");
    const form = make("form", "", title,
      make("p", "", t("admin.hint")),
      label, this.#field, this.#error, make("div", "admin-actions", cancel, use));
    title.id = "admin-title";
    form.id = "admin-form";
    this.#field.id = "admin-token";
    this.#field.type = "password";
    this.#field.autocomplete = "off";
    this.#field.required = true;
    this.#field.setAttribute("aria-describedby", "admin-error");
    label.htmlFor = "admin-token";
    this.#error.id = "admin-error";
    this.#error.setAttribute("role", "alert");
    use.type = "submit";
    this.#dialog.id = "admin";
    this.#dialog.setAttribute("aria-labelledby", "admin-title");
    cancel.addEventListener("click", () => this.#dialog.close());
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const problem = await useToken(this.#field.value).catch(() => t("admin.unreachable"));
      this.#say(problem);
      if (problem === null) this.#end();
    });
    this.#dialog.append(form);
    document.body.append(this.#dialog);
  }
}

/** @param {string} word @param {string} kind */
function button(word, kind = "") {
  const element = /** @type {HTMLButtonElement} */ (make("button", `button ${kind}`.trim(), word));
  element.type = "button";
  return element;
}
