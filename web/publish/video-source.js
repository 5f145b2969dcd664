/** The video that is sent: a camera, the screen, or a slate. It changes by exchanging one track, so the stream has no gap. */

import { otherCameras } from "../media/publish-settings.js";
import { t } from "../strings/strings.js";
import { openCamera } from "./devices.js";
import { nameOf } from "./problems.js";
import { Slate } from "./slate.js";

/** @typedef {import("../media/publish-settings.js").PublishSettings} PublishSettings */

/** Events: `change`, when another track is sent; `lost`, when the camera was taken away. */
export class VideoSource extends EventTarget {
  #name;
  /** @type {() => PublishSettings} */
  #settings;
  /** @type {MediaStreamTrack | null} */
  #camera = null;
  /** @type {MediaStreamTrack | null} */
  #screen = null;
  /** @type {Slate | null} */
  #slate = null;
  #isCovered = false;

  /** @param {() => string} name Of the stream. @param {() => PublishSettings} settings */
  constructor(name, settings) {
    super();
    this.#name = name;
    this.#settings = settings;
  }

  get isCovered() { return this.#isCovered; }
  get hasScreen() { return this.#screen !== null; }
  get hasCamera() { return this.#camera !== null; }
  /** @returns {number | null} Frames per second of a camera. A screen has one for each change, a slate few in a hidden tab. */
  get frameRate() {
    if (this.#slate !== null || this.#screen !== null || this.#camera === null) return null;
    const wanted = this.#settings().frameRate;
    return Math.min(wanted, this.#camera.getSettings().frameRate ?? wanted);
  }

  /** What the camera says about itself. */
  get cameraSettings() { return this.#camera?.getSettings() ?? {}; }
  /** Whether the preview is shown as in a mirror, as people know themselves. Viewers see it as it is. */
  get isMirrored() {
    const { facingMode } = this.cameraSettings;
    return this.#slate === null && this.#screen === null && facingMode !== "environment" && facingMode !== undefined;
  }

  /** @returns {MediaStreamTrack} What is sent. */
  get track() { return this.#slate?.track ?? this.#screen ?? this.#camera ?? this.#makeSlate().track; }

  #makeSlate() {
    const { width, height, frameRate } = this.#settings();
    const present = (this.#screen ?? this.#camera)?.getSettings();
    // Of the present video's size, so that the stream need not change its own.
    const size = { width: present?.width ?? width, height: present?.height ?? height, frameRate };
    this.#slate = new Slate(size, [this.#name(), t(this.#isCovered ? "publish.slate" : "publish.audioOnly")]);
    return this.#slate;
  }

  /** Sends what is to be sent now. */
  #exchange() {
    const old = this.#slate;
    this.#slate = null;
    if (this.#isCovered) this.#makeSlate();
    const { track } = this;
    track.contentHint = track === this.#screen ? "detail" : "";
    this.dispatchEvent(new Event("change"));
    old?.stop();
  }

  /** @param {MediaStreamTrack | null} track A camera that was opened; null for none. */
  useCamera(track) {
    const old = this.#camera;
    this.#camera = track;
    if (track !== null) {
      track.onended = () => {
        if (this.#camera !== track) return;
        this.#camera = null;
        this.#exchange();
        this.dispatchEvent(new Event("lost"));
      };
    }
    this.#exchange();
    old?.stop();
  }

  /** Opens the camera of the settings. Throws a DOMException. */
  async openCamera() { this.useCamera(await this.#open(() => openCamera(this.#settings()))); }

  /**
   * Takes the other camera.
   * @param {{deviceId: string}[]} cameras All there are.
   */
  async flip(cameras) {
    const choices = otherCameras(cameras, this.cameraSettings);
    try {
      this.useCamera(await this.#open(() => openCamera(this.#settings(), choices)));
    } catch (error) {
      // The one that was there is better than a slate.
      if (this.#camera === null) await this.openCamera().catch(() => {});
      throw error;
    }
  }

  /**
   * Opens another camera while the present one goes on. Phones often have one camera at a time: there a slate is sent meanwhile.
   * @param {() => Promise<MediaStreamTrack>} open
   */
  async #open(open) {
    try {
      return await open();
    } catch (error) {
      if (this.#camera === null || !["NotReadableError", "AbortError"].includes(nameOf(error))) throw error;
      this.useCamera(null);
      return open();
    }
  }

  /** @param {MediaStreamTrack | null} track Of the screen; null for none any more. */
  useScreen(track) {
    const old = this.#screen;
    this.#screen = track;
    if (track !== null) track.onended = () => { if (this.#screen === track) this.useScreen(null); };
    this.#exchange();
    old?.stop();
  }

  /** @param {boolean} isCovered */
  cover(isCovered) {
    this.#isCovered = isCovered;
    this.#exchange();
  }
}
