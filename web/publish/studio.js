/** Camera, microphone and screen together: what is opened, and what the menus show of it. */

import { NONE } from "../media/publish-settings.js";
import { listDevices, openBoth, openCamera, openMicrophone, openScreen } from "./devices.js";
import { Picture } from "./picture.js";
import { nameOf } from "./problems.js";
import { Sound } from "./sound.js";

/** Event: `devices`, after devices came or went or others are used. */
export class Studio extends EventTarget {
  picture;
  sound = new Sound();
  #panel;
  /** @type {MediaDeviceInfo[]} */
  cameras = [];
  #microphone = NONE;

  /** @param {() => string} name Of the stream. @param {import("./settings-panel.js").SettingsPanel} panel */
  constructor(name, panel) {
    super();
    this.#panel = panel;
    this.picture = new Picture(name, () => panel.settings);
    this.picture.addEventListener("lost", () => this.refresh());
    this.sound.addEventListener("lost", () => {
      this.#microphone = NONE;
      this.refresh();
    });
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
  }

  /** Whether there is anything to send, or nothing was wanted. */
  get isReady() {
    const { camera, microphone } = this.#panel.settings;
    return this.picture.hasCamera || this.picture.hasScreen || this.#microphone !== NONE || (camera === NONE && microphone === NONE);
  }

  /** Opens the remembered camera and microphone, or those that there are. Throws a DOMException where none may be used. */
  async open() {
    const { settings } = this.#panel;
    const wantsCamera = settings.camera !== NONE, wantsMicrophone = settings.microphone !== NONE;
    try {
      if (wantsCamera && wantsMicrophone) {
        const { camera, microphone } = await openBoth(settings);
        this.picture.useCamera(camera);
        this.#useMicrophone(microphone);
        return;
      }
    } catch (error) {
      if (nameOf(error) === "NotAllowedError") throw error;
      // One of them is missing or in use: the other one alone will do.
    } finally {
      await this.refresh();
    }
    const problems = /** @type {unknown[]} */ ([]);
    if (wantsCamera) await openCamera(settings).then((track) => this.picture.useCamera(track), (error) => problems.push(error));
    if (wantsMicrophone) await openMicrophone(settings).then((track) => this.#useMicrophone(track), (error) => problems.push(error));
    // A slate takes the place of a camera.
    if (!this.picture.hasCamera) this.picture.useCamera(null);
    await this.refresh();
    if (problems.length > 0) throw problems[0];
  }

  /** @param {MediaStreamTrack | null} track */
  #useMicrophone(track) {
    this.#microphone = track?.getSettings().deviceId ?? NONE;
    this.sound.useMicrophone(track);
  }

  /** Shows the devices that there are now. */
  async refresh() {
    const { cameras, microphones } = await listDevices();
    this.cameras = cameras;
    const used = { camera: this.picture.cameraSettings.deviceId ?? NONE, microphone: this.#microphone };
    // Where nothing could be opened, the menus show what is wanted, so that something else can be chosen.
    this.#panel.showDevices(cameras, microphones, this.isReady ? used : this.#panel.settings);
    this.dispatchEvent(new Event("devices"));
  }

  /** Takes what the menu of cameras says. */
  async takeCamera() {
    if (this.#panel.settings.camera === NONE) this.picture.useCamera(null);
    else await this.picture.openCamera();
    await this.refresh();
  }

  /** Opens the same camera in another size. It is ended first: browsers cut a picture of one that runs out of its present size. */
  async resizeCamera() {
    if (!this.picture.hasCamera) return;
    this.picture.useCamera(null);
    await this.takeCamera();
  }

  /** Takes what the menu of microphones and the switch of the voice say. */
  async takeMicrophone() {
    const { settings } = this.#panel;
    this.#useMicrophone(settings.microphone === NONE ? null : await openMicrophone(settings));
    await this.refresh();
  }

  async flip() {
    await this.picture.flip(this.cameras);
    const { deviceId } = this.picture.cameraSettings;
    if (deviceId !== undefined) this.#panel.useCamera(deviceId);
    await this.refresh();
  }

  /** Shows the screen, or the camera again. */
  async toggleScreen() {
    if (this.picture.hasScreen) {
      this.picture.useScreen(null);
      this.sound.useScreen(null);
      return;
    }
    const { picture, sound } = await openScreen(this.#panel.settings);
    this.picture.useScreen(picture);
    this.sound.useScreen(sound);
    picture.addEventListener("ended", () => this.sound.useScreen(null));
  }

  get tracks() { return { video: this.picture.track, audio: this.sound.track }; }
}
