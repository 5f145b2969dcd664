/** Addresses of streams, as pages give them to a player. */

import { isStreamName } from "../ui/links.js";

/**
 * @typedef {object} StreamAddress
 * @property {string} root What the addresses of the stream's server begin with, with the viewer's token: "https://host/~TOKEN".
 * @property {string} name The stream's.
 */

/**
 * @param {string} text The address of a stream's watch page or of its player, with or without a viewer's token.
 * @param {string} page The address of the page that has it.
 * @returns {StreamAddress | null} Null if it is none.
 */
export function streamAddress(text, page) {
  try {
    const url = new URL(text, page);
    const match = /^(\/~[^/]+)?\/(?:watch|embed)\/([^/]+)\/?$/.exec(url.pathname);
    if (match === null || !/^https?:$/.test(url.protocol)) return null;
    const name = decodeURIComponent(match[2]);
    return isStreamName(name) ? { root: url.origin + (match[1] ?? ""), name } : null;
  } catch {
    return null;
  }
}
