/** Why the server has ended a session of WHIP or WHEP. Its last message says so, too (RTCP BYE), but browsers tell no page. */

import { timeout } from "./fetching.js";

const TIMEOUT_MILLISECONDS = 2000;
/** It was ended a short while ago, or its bearer may not have it any more. */
const TELLING = [401, 403, 410];

/**
 * @param {string} session Its address.
 * @param {Record<string, string>} headers
 * @returns {Promise<string>} The reason, without a full stop; empty if there is none.
 */
export async function endingOf(session, headers = {}) {
  try {
    const response = await fetch(session, { cache: "no-store", headers, signal: timeout(TIMEOUT_MILLISECONDS) });
    if (!TELLING.includes(response.status)) return "";
    const { detail } = await response.json();
    return typeof detail === "string" ? detail.replace(/\.$/, "") : "";
  } catch {
    return "";
  }
}
