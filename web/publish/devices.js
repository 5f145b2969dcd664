/** Cameras, microphones and screens of this machine. */

import { cameraConstraints, microphoneConstraints, NONE } from "../media/publish-settings.js";
import { nameOf } from "./problems.js";

/** @typedef {import("../media/publish-settings.js").PublishSettings} PublishSettings */

/**
 * @returns {Promise<{cameras: MediaDeviceInfo[], microphones: MediaDeviceInfo[]}>} Before a kind is allowed, browsers tell one
 *   device of it at most, without name and identifier: that stands for any.
 */
export async function listDevices() {
  const all = await navigator.mediaDevices.enumerateDevices();
  const of = (/** @type {MediaDeviceKind} */ kind) => all.filter((device) => device.kind === kind);
  return { cameras: of("videoinput"), microphones: of("audioinput") };
}

/** @param {(device: object) => Promise<MediaStream>} open @param {object[]} devices */
async function first(open, devices) {
  for (const [index, device] of devices.entries()) {
    try {
      return await open(device);
    } catch (error) {
      // A device that is not there any more, or does not do what is wanted: the next one may.
      const isGone = ["OverconstrainedError", "NotFoundError"].includes(nameOf(error));
      if (!isGone || index === devices.length - 1) throw error;
    }
  }
  throw new DOMException("no device", "NotFoundError");
}

/** @param {PublishSettings} settings @param {object[]} devices What to try in turn; by default the remembered camera, then any. */
export async function openCamera(settings, devices = defaultCameras(settings)) {
  const stream = await first((device) => navigator.mediaDevices.getUserMedia({ video: cameraConstraints(settings, device) }), devices);
  return stream.getVideoTracks()[0];
}

/** @param {PublishSettings} settings */
function defaultCameras({ camera }) {
  const isNamed = camera !== "" && camera !== NONE;
  return [...(isNamed ? [{ deviceId: { exact: camera } }] : []), { facingMode: { ideal: "user" } }, {}];
}

/** @param {PublishSettings} settings */
export async function openMicrophone(settings) {
  const choices = [settings, { ...settings, microphone: "" }];
  const stream = await first(
    (choice) => navigator.mediaDevices.getUserMedia({ audio: microphoneConstraints(/** @type {PublishSettings} */ (choice)) }), choices);
  return stream.getAudioTracks()[0];
}

/**
 * Camera and microphone together, so that the browser asks once.
 * @param {PublishSettings} settings
 */
export async function openBoth(settings) {
  const audio = microphoneConstraints(settings);
  const stream = await first(
    (device) => navigator.mediaDevices.getUserMedia({ video: cameraConstraints(settings, device), audio }), defaultCameras(settings));
  return { camera: stream.getVideoTracks()[0], microphone: stream.getAudioTracks()[0] };
}

/**
 * A screen, window or tab, with its audio where the browser has it. Browsers make a larger one fit: the bit rate is for that size.
 * @param {PublishSettings} settings
 */
export async function openScreen({ width, height, frameRate }) {
  const stream = await navigator.mediaDevices.getDisplayMedia({
    video: { width: { max: width }, height: { max: height }, frameRate: { ideal: frameRate } },
    audio: { echoCancellation: false, noiseSuppression: false, autoGainControl: false },
  });
  return { video: stream.getVideoTracks()[0], audio: stream.getAudioTracks()[0] ?? null };
}

export const mayShareScreen = () => typeof navigator.mediaDevices?.getDisplayMedia === "function";
