/** Numbers and times as text. */

// Making a format takes longer than using it a hundred times.
const numbers = [0, 1, 2, 3].map((digits) =>
  new Intl.NumberFormat(undefined, { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const moments = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @param {number} value @param {number} digits 0 to 3. */
const fixed = (value, digits) => numbers[digits].format(value);

/** @param {number | null | undefined} seconds @returns {string} 0:07, 12:30 or 3:04:05. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const whole = Math.max(0, Math.floor(/** @type {number} */ (seconds)));
  const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

/** @param {number} seconds @returns {string} The same to a tenth of a second: 12:30.5. */
export function exact(seconds) {
  const tenths = Math.max(0, Math.round(seconds * 10));
  return `${duration(Math.floor(tenths / 10))}.${tenths % 10}`;
}

/** @param {number | null | undefined} bytes */
export function size(bytes) {
  if (!Number.isFinite(bytes)) return "–";
  let value = /** @type {number} */ (bytes);
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return `${fixed(value, value < 10 && unit !== "B" ? 1 : 0)} ${unit}`;
    value /= 1000;
  }
  return `${fixed(value, 1)} TB`;
}

/** @param {number | null | undefined} bitsPerSecond */
export function bitrate(bitsPerSecond) {
  if (!Number.isFinite(bitsPerSecond)) return "–";
  const value = /** @type {number} */ (bitsPerSecond);
  if (value >= 1e6) return `${fixed(value / 1e6, value < 1e7 ? 1 : 0)} Mbit/s`;
  return `${fixed(value / 1e3, 0)} kbit/s`;
}

/** @param {number | null | undefined} value @param {number} digits */
export function seconds(value, digits = 1) {
  return Number.isFinite(value) ? `${fixed(/** @type {number} */ (value), digits)} s` : "–";
}

/**
 * @param {string | null | undefined} iso
 * @returns {string} Date and time of day in the reader's time zone and language.
 */
export function moment(iso) {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return "–";
  return moments.format(date);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** @param {number} date Milliseconds since 1970. @returns {string} Time of day in the reader's time zone. */
export const timeOfDay = (date) => clock.format(date);

/** @param {number} count @param {string} noun */
export const plural = (count, noun) => `${fixed(count, 0)} ${noun}${count === 1 ? "" : "s"}`;

/** @param {import("../api/api.js").Track} track @returns {string} For example "H.264 1280×720, 30 fps". */
export function track(track) {
  const parts = [];
  if (track.width && track.height) parts.push(`${track.width}×${track.height}`);
  if (track.frameRate) parts.push(`${Number(track.frameRate.toFixed(2))} fps`);
  if (track.sampleRate) parts.push(`${track.sampleRate / 1000} kHz`);
  if (track.channels) parts.push({ 1: "mono", 2: "stereo" }[track.channels] ?? `${track.channels} channels`);
  return [track.codec, parts.join(", ")].filter(Boolean).join(" ");
}
