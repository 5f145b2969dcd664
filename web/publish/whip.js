/** Requests of WHIP (RFC 9725): a session is made, changed and ended. */

import { timeout } from "../media/fetching.js";
import { base } from "../media/root.js";
import { iceServersOf } from "../media/ice-servers.js";
import { endingOf } from "../media/session-ending.js";

/** Time limit of one request. */
const TIMEOUT_MILLISECONDS = 8000;

/**
 * @typedef {object} Reply
 * @property {number | null} status Null if there was no response.
 * @property {string} text
 * @property {{code?: string, detail?: string, help?: string}} problem Of a refusal.
 * @property {string | null} location Of the session.
 * @property {number | null} retryAfter Seconds.
 * @property {RTCIceServer[]} iceServers
 */

/** @type {Reply} What there is without a response. */
export const NONE = { status: null, text: "", problem: {}, location: null, retryAfter: null, iceServers: [] };

/** @param {string} address @param {RequestInit} request @returns {Promise<Reply>} */
async function send(address, request) {
  try {
    const response = await fetch(address, { ...request, cache: "no-store", signal: timeout(TIMEOUT_MILLISECONDS) });
    const text = await response.text();
    const retryAfter = Number(response.headers.get("Retry-After") ?? "");
    return {
      status: response.status, text, problem: response.ok ? {} : parsed(text), location: response.headers.get("Location"),
      retryAfter: retryAfter > 0 ? retryAfter : null, iceServers: iceServersOf(response.headers.get("Link") ?? ""),
    };
  } catch {
    return { ...NONE };
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}

/** @param {string} key @returns {Record<string, string>} The key is in no address, which logs and histories would keep. */
const credentials = (key) => (key === "" ? {} : { Authorization: `Bearer ${key}` });

/** @param {string} name @param {string} key @param {string} offer */
export const offer = (name, key, offer) => send(`${base}/whip/${encodeURIComponent(name)}`, {
  method: "POST", body: offer, headers: { "Content-Type": "application/sdp", ...credentials(key) },
});

/**
 * Begins ICE again, whatever the session's tag is.
 * @param {string} session
 * @param {string} key
 * @param {string} fragment
 */
export const restart = (session, key, fragment) => send(session, {
  method: "PATCH", body: fragment,
  headers: { "Content-Type": "application/trickle-ice-sdpfrag", "If-Match": "*", ...credentials(key) },
});

/**
 * Why the server has ended a session.
 * @param {string} session
 * @param {string} key
 */
export const ending = (session, key) => endingOf(session, credentials(key));

/**
 * Ends a session, also while the page is left.
 * @param {string} session
 * @param {string} key
 */
export const end = (session, key) => send(session, { method: "DELETE", keepalive: true, headers: credentials(key) });
