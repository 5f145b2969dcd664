/** The dialog for the admin token, and the buttons that open it. */

import { forgetToken, hasToken, useToken } from "../api/admin.js";
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
    for (const opener of this.#openers) setText(opener, hasToken() ? "Sign out" : "Manage");
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
    const title = make("h2", "", "Manage this server");
    const label = /** @type {HTMLLabelElement} */ (make("label", "", "Admin token"));
    const use = button("Sign in");
    const cancel = button("Cancel", "quiet");
    const form = make("form", "", title,
      make("p", "", "Enter the admin token that this server was started with (", make("code", "", "--admin-token"),
        "). With it you can start and stop recordings, delete and protect them, and control the server’s own cameras ",
        "and other sources. The token is kept until this tab is closed."),
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
      const problem = await useToken(this.#field.value).catch(() => "The server cannot be reached.");
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
