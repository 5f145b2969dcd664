/** Plain sentences for what a browser or the server refuses. */

import { t } from "../strings/strings.js";

/** Exceptions of getUserMedia and getDisplayMedia that have a sentence of their own. (Media Capture and Streams §10.2) */
const KNOWN = [
  "NotAllowedError", "SecurityError", "NotFoundError", "NotReadableError", "OverconstrainedError", "AbortError", "InvalidStateError",
];

/** @param {unknown} error @returns {string} The name of an exception. */
export const nameOf = (error) => (error instanceof Error || error instanceof DOMException ? error.name : "");

/** @param {unknown} error Why a camera or microphone was not opened. */
export function deviceProblem(error) {
  const name = nameOf(error);
  return KNOWN.includes(name) ? t(`deviceProblem.${name}`) : t("deviceProblem.unknown", { name: name || "?" });
}

/** @param {unknown} error Why the screen is not shared. */
export function screenProblem(error) {
  const name = nameOf(error);
  return name === "NotAllowedError" || name === "AbortError" ? t("deviceProblem.screen") : deviceProblem(error);
}

/** @returns {string | null} Why this page can have no camera at all; null if it can. */
export function pageProblem() {
  if (!("RTCPeerConnection" in globalThis)) return t("publish.noWebRTCHere");
  // Browsers give devices to secure pages alone.
  if (!isSecureContext) return t("publish.insecure", { port: location.port === "" ? "" : `:${location.port}`, path: location.pathname });
  return navigator.mediaDevices === undefined ? t("publish.noDevices") : null;
}

/** Codes of the server's problems that have a sentence of their own. */
const CODES = [
  "publish-key-wrong", "stream-busy", "webrtc-off", "no-room", "address-not-allowed", "too-many-publications",
];

/** @param {{code?: string, detail?: string, help?: string}} problem @param {number | null} status Null without a response. */
export function serverProblem(problem, status) {
  if (status === null) return t("refusal.unreachable");
  if (CODES.includes(problem.code ?? "")) return t(`refusal.${problem.code}`);
  return [problem.detail, problem.help].filter(Boolean).join(" ") || t("admin.status", { status });
}
