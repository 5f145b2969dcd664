/** Numbers and times as text, in the reader's language. */

import { locale, many, t } from "../strings/strings.js";

// Making a format takes longer than using it a hundred times.
const numbers = [0, 1, 2, 3].map((digits) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits }));
const moments = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "medium" });

const plain = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });

/** @param {number} value With as many digits as it has, at most two behind the point. */
export const number = (value) => plain.format(value);

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

/** @param {number | null | undefined} bytes @returns {string} The unit stays on the line of its number. */
export function size(bytes) {
  if (!Number.isFinite(bytes)) return "–";
  let value = /** @type {number} */ (bytes);
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (value < 1000) return `${fixed(value, value < 10 && unit !== "B" ? 1 : 0)}\u00a0${unit}`;
    value /= 1000;
  }
  return `${fixed(value, 1)}\u00a0TB`;
}

/** @param {number | null | undefined} bitsPerSecond */
export function bitrate(bitsPerSecond) {
  if (!Number.isFinite(bitsPerSecond)) return "–";
  const value = /** @type {number} */ (bitsPerSecond);
  if (value >= 1e6) return t("unit.megabit", { value: fixed(value / 1e6, value < 1e7 ? 1 : 0) });
  return t("unit.kilobit", { value: fixed(value / 1e3, 0) });
}

/** @param {number | null | undefined} value @param {number} digits */
export function seconds(value, digits = 1) {
  return Number.isFinite(value) ? t("unit.seconds", { value: fixed(/** @type {number} */ (value), digits) }) : "–";
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

const clock = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });

/** @param {number} date Milliseconds since 1970. @returns {string} Time of day in the reader's time zone. */
export const timeOfDay = (date) => clock.format(date);

/**
 * Frames per second, for example "30 fps".
 * @param {number} rate
 */
export const frameRate = (rate) => t("unit.fps", { value: number(rate) });

/** @param {import("../api/api.js").Track} track @returns {string} For example "H.264 1280×720, 30 fps". */
export function track(track) {
  const parts = [];
  if (track.width && track.height) parts.push(`${track.width}×${track.height}`);
  if (track.frameRate) parts.push(frameRate(track.frameRate));
  if (track.sampleRate) parts.push(t("unit.kilohertz", { value: number(track.sampleRate / 1000) }));
  if (track.channels) parts.push(track.channels === 1 ? t("audio.mono") : track.channels === 2 ? t("audio.stereo") : many("audio.channels", track.channels));
  return [track.codec, parts.join(", ")].filter(Boolean).join(" ");
}
