/** Menus of cameras, microphones and qualities. What is chosen is remembered in this browser. */

import { BOUNDS, CUSTOM, NONE, PRESETS, settingsFrom, sizeOf, within } from "../media/publish-settings.js";
import { t } from "../strings/strings.js";
import { byId, make } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { codecsHere } from "./sender.js";

/** @typedef {import("../media/publish-settings.js").PublishSettings} PublishSettings */
/** @typedef {import("../media/publish-settings.js").Figure} Figure */

const REMEMBERED = "weir.publish";
/** Bit rates are typed in kbit/s. */
const KILO = 1000;

/** Event: `change`, whose detail names the setting. */
export class SettingsPanel extends EventTarget {
  /** @type {PublishSettings} */
  settings = remembered();
  #camera = byId("camera", HTMLSelectElement);
  #microphone = byId("microphone", HTMLSelectElement);
  #preset = byId("preset", HTMLSelectElement);
  #codec = byId("codec", HTMLSelectElement);
  #voice = byId("voice", HTMLInputElement);
  #copy = byId("copy", HTMLInputElement);
  /** @type {Record<Figure, HTMLInputElement>} */
  #figures = {
    width: byId("width", HTMLInputElement), height: byId("height", HTMLInputElement),
    frameRate: byId("frame-rate", HTMLInputElement), bitrate: byId("bit-rate", HTMLInputElement),
  };

  constructor() {
    super();
    const presets = Object.entries(PRESETS).map(([key, { frameRate, bitrate }]) =>
      option(key, t("publish.preset", { size: sizeOf(key), rate: format.frameRate(frameRate), bitrate: format.bitrate(bitrate) })));
    this.#preset.append(...presets, option(CUSTOM, t("publish.custom")));
    this.#codec.append(option("", t("publish.codecAuto")), ...codecsHere().map((codec) => option(codec, codec === "H264" ? "H.264" : codec)));
    for (const [name, input] of /** @type {[Figure, HTMLInputElement][]} */ (Object.entries(this.#figures))) {
      const scale = name === "bitrate" ? KILO : 1;
      [input.min, input.max] = BOUNDS[name].map((bound) => String(bound / scale));
      input.addEventListener("change", () => this.#type(name, input, scale));
    }
    this.#preset.addEventListener("change", () => this.#choose("preset", { preset: this.#preset.value }));
    this.#codec.addEventListener("change", () => this.#choose("codec", { codec: this.#codec.value }));
    this.#voice.addEventListener("change", () => this.#choose("voice", { voice: this.#voice.checked }));
    this.#copy.addEventListener("change", () => this.#choose("copy", { copy: this.#copy.checked }));
    this.#camera.addEventListener("change", () => this.#choose("camera", { camera: this.#camera.value }));
    this.#microphone.addEventListener("change", () => this.#choose("microphone", { microphone: this.#microphone.value }));
    this.#show();
  }

  /** @param {Figure} name @param {HTMLInputElement} input @param {number} scale */
  #type(name, input, scale) {
    const value = within(name, input.value === "" ? "" : Number(input.value) * scale);
    if (value !== null) this.#choose(name, { preset: CUSTOM, [name]: value });
    else this.#show();
  }

  /** @param {string} name @param {object} values */
  #choose(name, values) {
    this.settings = settingsFrom({ ...this.settings, ...values });
    remember(this.settings);
    this.#show();
    this.dispatchEvent(new CustomEvent("change", { detail: name }));
  }

  #show() {
    const { preset, codec, voice, copy } = this.settings;
    this.#preset.value = preset;
    this.#codec.value = codec;
    this.#voice.checked = voice;
    this.#copy.checked = copy;
    for (const [name, input] of /** @type {[Figure, HTMLInputElement][]} */ (Object.entries(this.#figures))) {
      input.value = String(this.settings[name] / (name === "bitrate" ? KILO : 1));
    }
  }

  /**
   * @param {MediaDeviceInfo[]} cameras @param {MediaDeviceInfo[]} microphones
   * @param {{camera: string, microphone: string}} used The identifiers of those in use; NONE for none.
   */
  showDevices(cameras, microphones, used) {
    fill(this.#camera, cameras, used.camera, t("publish.noCamera"), (number) => t("publish.cameraNumber", { number }));
    fill(this.#microphone, microphones, used.microphone, t("publish.noMicrophone"), (number) => t("publish.microphoneNumber", { number }));
  }

  /**
   * Remembers the camera in use, chosen by the flip button.
   * @param {string} camera
   */
  useCamera(camera) {
    this.settings = settingsFrom({ ...this.settings, camera });
    remember(this.settings);
  }

  /**
   * The size stays while it is sent; devices and the bit rate do not have to.
   * @param {boolean} isLive
   */
  lock(isLive) {
    const { width, height, frameRate } = this.#figures;
    for (const input of [this.#preset, this.#codec, this.#copy, width, height, frameRate]) input.disabled = isLive;
  }
}

/** @param {HTMLSelectElement} menu @param {MediaDeviceInfo[]} devices @param {string} used @param {string} none @param {(number: number) => string} numbered */
function fill(menu, devices, used, none, numbered) {
  menu.replaceChildren(
    ...devices.map((device, index) => option(device.deviceId, device.label || numbered(index + 1))), option(NONE, none));
  menu.value = used;
  // A device that was remembered and is not there: any.
  if (menu.selectedIndex < 0) menu.selectedIndex = 0;
}

/** @param {string} value @param {string} text */
function option(value, text) {
  const element = /** @type {HTMLOptionElement} */ (make("option", "", text));
  element.value = value;
  return element;
}

function remembered() {
  try {
    return settingsFrom(JSON.parse(localStorage.getItem(REMEMBERED) ?? "null"));
  } catch {
    return settingsFrom(null);
  }
}

/** @param {PublishSettings} settings */
function remember(settings) {
  try {
    localStorage.setItem(REMEMBERED, JSON.stringify(settings));
  } catch {
    // A browser that keeps nothing asks again.
  }
}
