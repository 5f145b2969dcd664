/** The admin token: kept for this tab, and sent with what changes something. */

import { timeout } from "../media/fetching.js";

const KEY = "weir.adminToken";
/** A request that takes longer than this has failed. */
const TIMEOUT_MILLISECONDS = 15000;

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

export const forgetToken = () => sessionStorage.removeItem(KEY);

/** @param {string} path @param {string} token @param {string} method @param {string} [body] */
function send(path, token, method, body) {
  return fetch(path, {
    method, body, cache: "no-store", headers: { Authorization: `Bearer ${token}` },
    signal: timeout(TIMEOUT_MILLISECONDS),
  });
}

/** @param {Response} response @returns {Promise<string>} What the server says of a failure. */
async function reason(response) {
  const problem = await response.json().catch(() => ({}));
  return [problem.detail, problem.help].filter(Boolean).join(" ") || `The server responded with status ${response.status}.`;
}

/**
 * Keeps a token if the server takes it.
 * @param {string} token
 * @returns {Promise<string | null>} Why not, or null.
 */
export async function useToken(token) {
  const response = await send("/api/v1/admin", token, "GET");
  if (response.status === 401) return "This is not the admin token of this server.";
  if (!response.ok) return reason(response);
  sessionStorage.setItem(KEY, token);
  return null;
}

/**
 * Changes something, or asks for what only who may change things is told; throws an Error whose message is for people.
 * @param {"GET" | "POST" | "DELETE"} method
 * @param {string} path
 * @param {string} [body]
 * @returns {Promise<any>}
 */
export async function change(method, path, body) {
  const response = await send(path, sessionStorage.getItem(KEY) ?? "", method, body);
  if (response.status === 401) forgetToken();
  if (!response.ok) throw new Error(await reason(response));
  return response.json();
}

/**
 * A picture that only who may change things is shown; null where there is none now.
 * @param {string} path
 * @returns {Promise<ImageBitmap | null>}
 */
export async function fetchFrame(path) {
  const response = await send(path, sessionStorage.getItem(KEY) ?? "", "GET");
  return response.ok ? createImageBitmap(await response.blob()) : null;
}
