/** The menus for cameras and microphones of the server's machine. They need the admin token. */

import { change } from "../api/admin.js";
import { root } from "../media/root.js";
import { byId, make } from "../ui/dom.js";

/** @typedef {import("../api/api.js").Device} Device */
/** @typedef {"camera" | "microphone"} Subject */

const PREFIX = { camera: "v4l2:", microphone: "alsa:" };

export class DeviceMenu {
  #box = byId("devices", HTMLElement);
  #refresh = byId("devices-refresh", HTMLButtonElement);
  #menus = { camera: byId("camera", HTMLSelectElement), microphone: byId("microphone", HTMLSelectElement) };
  #rows = { camera: byId("camera-row", HTMLElement), microphone: byId("microphone-row", HTMLElement) };
  #choose;
  /** @type {Record<Subject, Device[]> | null} Null before the first request. */
  #found = null;
  #isAsking = false;
  /** @type {Set<Subject>} Menus whose choice is being sent. They are not refilled meanwhile. */
  #busy = new Set();

  /** @param {(subject: Subject, device: string) => Promise<void>} choose */
  constructor(choose) {
    this.#choose = choose;
    this.#refresh.addEventListener("click", () => this.#fetchDevices());
    for (const subject of /** @type {Subject[]} */ (["camera", "microphone"])) {
      this.#menus[subject].addEventListener("change", () => this.#switch(subject));
    }
  }

  /** @param {import("../api/api.js").Capture | null} capture What is captured now; null hides the menus. */
  show(capture) {
    this.#box.hidden = capture === null;
    if (capture === null) return;
    if (this.#found === null && !this.#isAsking) this.#fetchDevices();
    this.#fill("camera", capture.video?.device ?? null);
    this.#fill("microphone", capture.audio?.device ?? null);
  }

  async #fetchDevices() {
    this.#isAsking = true;
    this.#refresh.disabled = true;
    try {
      const found = await change("GET", `${root}/api/v1/devices`);
      this.#found = { camera: found.cameras, microphone: found.microphones };
    } catch {
      // The devices in use are shown anyway, and the button repeats the request.
      this.#found ??= { camera: [], microphone: [] };
    } finally {
      this.#isAsking = false;
      this.#refresh.disabled = false;
    }
  }

  /** @param {Subject} subject @param {string | null} device The device in use; null if the source has none of this kind. */
  #fill(subject, device) {
    this.#rows[subject].hidden = device === null;
    const menu = this.#menus[subject];
    if (device === null || this.#busy.has(subject)) return;
    const present = PREFIX[subject] + device;
    const found = this.#found?.[subject] ?? [];
    const own = { device: present, name: "", problem: null };
    const all = found.some((d) => d.device === present) ? found : [own, ...found];
    const text = JSON.stringify(all);
    if (menu.dataset.shown !== text) {
      menu.dataset.shown = text;
      menu.replaceChildren(...all.map((d) => option(d, present)));
    }
    if (menu.value !== present) menu.value = present;
  }

  /** @param {Subject} subject */
  async #switch(subject) {
    this.#busy.add(subject);
    try {
      await this.#choose(subject, this.#menus[subject].value);
    } finally {
      this.#busy.delete(subject);
    }
  }
}

/** @param {Device} device @param {string} present */
function option(device, present) {
  const words = [device.name, device.device, device.problem].filter(Boolean).join(" · ");
  const element = /** @type {HTMLOptionElement} */ (make("option", "", words));
  element.value = device.device;
  // The device in use stays selectable, even with a problem.
  element.disabled = device.problem !== null && device.device !== present;
  return element;
}
