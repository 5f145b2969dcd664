/** Sizes, rates and bit rates of what this browser publishes. */

/**
 * @typedef {object} PublishSettings
 * @property {string} preset A key of PRESETS, or CUSTOM.
 * @property {number} width
 * @property {number} height
 * @property {number} frameRate Frames per second.
 * @property {number} bitrate Of the video, in bits per second.
 * @property {"" | "H264" | "VP9" | "AV1"} codec Empty: what the server prefers.
 * @property {boolean} voice Echo and noise are taken out of the microphone's audio, and its loudness is levelled.
 * @property {boolean} copy A copy is kept in the browser.
 * @property {string} camera Its identifier; empty for any, NONE for none.
 * @property {string} microphone
 */

export const CUSTOM = "custom";
/** No camera, or no microphone. */
export const NONE = "none";

/** @type {Record<string, {width: number, height: number, frameRate: number, bitrate: number}>} */
export const PRESETS = {
  "360p30": { width: 640, height: 360, frameRate: 30, bitrate: 800_000 },
  "480p30": { width: 854, height: 480, frameRate: 30, bitrate: 1_200_000 },
  "720p30": { width: 1280, height: 720, frameRate: 30, bitrate: 2_500_000 },
  "720p60": { width: 1280, height: 720, frameRate: 60, bitrate: 4_000_000 },
  "1080p30": { width: 1920, height: 1080, frameRate: 30, bitrate: 4_500_000 },
  "1080p60": { width: 1920, height: 1080, frameRate: 60, bitrate: 7_000_000 },
};
const USUAL = "720p30";

/** @typedef {"width" | "height" | "frameRate" | "bitrate"} Figure */

/** @type {Record<Figure, [number, number]>} The least and the most of each. */
export const BOUNDS = {
  width: [160, 3840], height: [120, 2160], frameRate: [1, 60], bitrate: [100_000, 20_000_000],
};

const FIGURES = /** @type {Figure[]} */ (Object.keys(BOUNDS));
/** The longest identifier of a device that is remembered. */
const LONGEST_IDENTIFIER = 256;

/** @param {string} key @returns {string} "1280×720, 30" of a preset, for its menu. */
export const sizeOf = (key) => `${PRESETS[key].width}×${PRESETS[key].height}`;

/**
 * @param {unknown} stored What was remembered, by this or another version of the page.
 * @returns {PublishSettings} With the usual value for each that is missing or out of bounds.
 */
export function settingsFrom(stored) {
  const given = /** @type {Record<string, unknown>} */ (typeof stored === "object" && stored !== null ? stored : {});
  const preset = Object.hasOwn(PRESETS, String(given.preset)) || given.preset === CUSTOM ? String(given.preset) : USUAL;
  const figures = { ...PRESETS[preset === CUSTOM ? USUAL : preset] };
  if (preset === CUSTOM) for (const name of FIGURES) figures[name] = within(name, given[name]) ?? figures[name];
  const device = (/** @type {unknown} */ value) =>
    typeof value === "string" && value.length <= LONGEST_IDENTIFIER ? value : "";
  return {
    preset, ...figures,
    codec: given.codec === "H264" || given.codec === "VP9" || given.codec === "AV1" ? given.codec : "",
    voice: given.voice !== false,
    copy: given.copy !== false,
    camera: device(given.camera),
    microphone: device(given.microphone),
  };
}

/** @param {Figure} name @param {unknown} value @returns {number | null} Null if it is no number within the bounds. */
export function within(name, value) {
  const number = Math.round(Number(value));
  const [least, most] = BOUNDS[name];
  return value !== "" && value !== null && Number.isFinite(number) && number >= least && number <= most ? number : null;
}

/**
 * @param {PublishSettings} settings
 * @param {object} device What names the camera: `deviceId` or `facingMode`.
 * @returns {MediaTrackConstraints}
 */
export const cameraConstraints = ({ width, height, frameRate }, device) =>
  ({ ...device, width: { ideal: width }, height: { ideal: height }, frameRate: { ideal: frameRate, max: Math.max(frameRate, 15) } });

/**
 * @param {PublishSettings} settings
 * @returns {MediaTrackConstraints} Of the microphone.
 */
export const microphoneConstraints = ({ voice, microphone }) => ({
  ...(microphone === "" || microphone === NONE ? {} : { deviceId: { exact: microphone } }),
  echoCancellation: voice, noiseSuppression: voice, autoGainControl: voice,
  ...(voice ? {} : { channelCount: { ideal: 2 } }),
});

/**
 * The cameras to try in turn for the other one: the opposite side of a phone first, then the next of the list.
 * @param {{deviceId: string}[]} cameras
 * @param {{deviceId?: string, facingMode?: string}} present What the camera in use says about itself.
 * @returns {object[]}
 */
export function otherCameras(cameras, { deviceId, facingMode }) {
  const place = cameras.findIndex((camera) => camera.deviceId === deviceId);
  const next = cameras[(place + 1) % cameras.length];
  const opposite = facingMode === "user" ? "environment" : facingMode === "environment" ? "user" : null;
  return [
    ...(opposite === null ? [] : [{ facingMode: { exact: opposite } }]),
    ...(next === undefined || next.deviceId === deviceId ? [] : [{ deviceId: { exact: next.deviceId } }]),
  ];
}
