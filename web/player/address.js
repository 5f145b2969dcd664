/** Addresses of streams, as pages give them to a player. */

import { rootOf } from "../media/root.js";
import { isStreamName } from "../ui/links.js";

/**
 * @typedef {object} StreamAddress
 * @property {string} root What the addresses of the stream's server begin with, with the viewer's token: "https://host/~TOKEN".
 * @property {string} name The stream's.
 */

/** What the addresses of the server begin with that this script comes from. */
const HOME = new URL(import.meta.url).origin + rootOf(import.meta.url);

/**
 * @param {string} text The address of a stream's watch page or of its player, with or without a viewer's token.
 * @param {string} page The address of the page that has it.
 * @param {string} home Streams of the server at this address may stand below its path. Others stand at the root of their server.
 * @returns {StreamAddress | null} Null if it is none.
 */
export function streamAddress(text, page, home = HOME) {
  try {
    const url = new URL(text, page);
    const before = url.href.startsWith(`${home}/`) ? home : url.origin;
    const match = /^(\/~[^/]+)?\/(?:watch|embed)\/([^/]+)\/?$/.exec(url.pathname.slice(before.length - url.origin.length));
    if (match === null || !/^https?:$/.test(url.protocol)) return null;
    const name = decodeURIComponent(match[2]);
    return isStreamName(name) ? { root: before + (match[1] ?? ""), name } : null;
  } catch {
    return null;
  }
}
