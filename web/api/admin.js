/** The admin token. It is kept for this tab, and sent with requests that need it. */

import { root } from "../media/root.js";
import { timeout } from "../media/fetching.js";
import { t } from "../strings/strings.js";
import { ADMIN_TOKEN as KEY } from "./api.js";

/** Time limit of one request. */
const TIMEOUT_MILLISECONDS = 15000;

export const hasToken = () => sessionStorage.getItem(KEY) !== null;

export const forgetToken = () => sessionStorage.removeItem(KEY);

/** Headers of a request with the admin token. @returns {Record<string, string>} */
export const authorization = () => ({ Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` });

/** @param {string} path @param {string} token @param {string} method @param {string} [body] */
function send(path, token, method, body) {
  return fetch(path, {
    method, body, cache: "no-store", headers: { Authorization: `Bearer ${token}` },
    signal: timeout(TIMEOUT_MILLISECONDS),
  });
}

/** @param {Response} response @returns {Promise<string>} The server's explanation of a failure. */
async function reason(response) {
  const problem = await response.json().catch(() => ({}));
  return [problem.detail, problem.help].filter(Boolean).join(" ") || t("admin.status", { status: response.status });
}

/**
 * Stores a token if the server accepts it.
 * @param {string} token
 * @returns {Promise<string | null>} Why it was not accepted, or null.
 */
export async function useToken(token) {
  const response = await send(`${root}/api/v1/admin`, token, "GET");
  if (response.status === 401) return t("admin.wrong");
  if (!response.ok) return reason(response);
  sessionStorage.setItem(KEY, token);
  return null;
}

/**
 * Sends a request with the admin token. Throws an Error with a message to show to the user.
 * @param {"GET" | "POST" | "PUT" | "DELETE"} method
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
 * Fetches a JPEG with the admin token; null if there is none now.
 * @param {string} path
 * @returns {Promise<ImageBitmap | null>}
 */
export async function fetchFrame(path) {
  const response = await send(path, sessionStorage.getItem(KEY) ?? "", "GET");
  return response.ok ? createImageBitmap(await response.blob()) : null;
}
