/** Addresses of recordings on the page of recordings. */

import { root } from "../media/root.js";

/**
 * @param {{stream: string, file: string}} recording
 * @param {number | null} [at] Seconds of the recording at which it begins to play.
 * @returns {string} Without a viewer's token, so that it can be handed on.
 */
export function recordingLink({ stream, file }, at = null) {
  const query = new URLSearchParams({ stream, play: file });
  if (at !== null && at > 0) query.set("t", String(at));
  return `${root}/recordings?${query}`;
}

/** @param {string} search A page's query. @returns {{stream: string, file: string, at: number} | null} What it asks to play. */
export function linkedRecording(search) {
  const query = new URLSearchParams(search);
  const [stream, file] = [query.get("stream"), query.get("play")];
  const at = Number(query.get("t") ?? 0);
  return stream === null || file === null ? null : { stream, file, at: Number.isFinite(at) && at > 0 ? at : 0 };
}
