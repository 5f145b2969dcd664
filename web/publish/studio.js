/** Camera, microphone and screen together: what is opened, and what the menus show of it. */

import { NONE } from "../media/publish-settings.js";
import { listDevices, openBoth, openCamera, openMicrophone, openScreen } from "./devices.js";
import { VideoSource } from "./video-source.js";
import { nameOf } from "./problems.js";
import { AudioSource } from "./audio-source.js";

/** Event: `devices`, after devices came or went or others are used. */
export class Studio extends EventTarget {
  video;
  audio = new AudioSource();
  #panel;
  /** @type {MediaDeviceInfo[]} */
  cameras = [];
  #microphone = NONE;

  /** @param {() => string} name Of the stream. @param {import("./settings-panel.js").SettingsPanel} panel */
  constructor(name, panel) {
    super();
    this.#panel = panel;
    this.video = new VideoSource(name, () => panel.settings);
    this.video.addEventListener("lost", () => this.refresh());
    this.audio.addEventListener("lost", () => {
      this.#microphone = NONE;
      this.refresh();
    });
    navigator.mediaDevices?.addEventListener("devicechange", () => this.refresh());
  }

  /** Whether there is anything to send, or nothing was wanted. */
  get isReady() {
    const { camera, microphone } = this.#panel.settings;
    return this.video.hasCamera || this.video.hasScreen || this.#microphone !== NONE || (camera === NONE && microphone === NONE);
  }

  /** Opens the remembered camera and microphone, or those that there are. Throws a DOMException where none may be used. */
  async open() {
    const { settings } = this.#panel;
    const wantsCamera = settings.camera !== NONE, wantsMicrophone = settings.microphone !== NONE;
    try {
      if (wantsCamera && wantsMicrophone) {
        const { camera, microphone } = await openBoth(settings);
        this.video.useCamera(camera);
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
    if (wantsCamera) await openCamera(settings).then((track) => this.video.useCamera(track), (error) => problems.push(error));
    if (wantsMicrophone) await openMicrophone(settings).then((track) => this.#useMicrophone(track), (error) => problems.push(error));
    // A slate takes the place of a camera.
    if (!this.video.hasCamera) this.video.useCamera(null);
    await this.refresh();
    if (problems.length > 0) throw problems[0];
  }

  /** @param {MediaStreamTrack | null} track */
  #useMicrophone(track) {
    this.#microphone = track?.getSettings().deviceId ?? NONE;
    this.audio.useMicrophone(track);
  }

  /** Shows the devices that there are now. */
  async refresh() {
    const { cameras, microphones } = await listDevices();
    this.cameras = cameras;
    const used = { camera: this.video.cameraSettings.deviceId ?? NONE, microphone: this.#microphone };
    // Where nothing could be opened, the menus show what is wanted, so that something else can be chosen.
    this.#panel.showDevices(cameras, microphones, this.isReady ? used : this.#panel.settings);
    this.dispatchEvent(new Event("devices"));
  }

  /** Takes what the menu of cameras says. */
  async takeCamera() {
    if (this.#panel.settings.camera === NONE) this.video.useCamera(null);
    else await this.video.openCamera();
    await this.refresh();
  }

  /** Opens the same camera in another size. It is ended first: browsers crop the frames of one that runs to the new size. */
  async resizeCamera() {
    if (!this.video.hasCamera) return;
    this.video.useCamera(null);
    await this.takeCamera();
  }

  /** Takes what the menu of microphones and the switch of the voice say. */
  async takeMicrophone() {
    const { settings } = this.#panel;
    this.#useMicrophone(settings.microphone === NONE ? null : await openMicrophone(settings));
    await this.refresh();
  }

  async flip() {
    await this.video.flip(this.cameras);
    const { deviceId } = this.video.cameraSettings;
    if (deviceId !== undefined) this.#panel.useCamera(deviceId);
    await this.refresh();
  }

  /** Shows the screen, or the camera again. */
  async toggleScreen() {
    if (this.video.hasScreen) {
      this.video.useScreen(null);
      this.audio.useScreen(null);
      return;
    }
    const { video, audio } = await openScreen(this.#panel.settings);
    this.video.useScreen(video);
    this.audio.useScreen(audio);
    video.addEventListener("ended", () => this.audio.useScreen(null));
  }

  get tracks() { return { video: this.video.track, audio: this.audio.track }; }
}
