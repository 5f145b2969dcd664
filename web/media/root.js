/** Where this server stands for the page: below which path, and with which token. */

/** @param {string} script The address of a script of this server. @returns {string} What the server's paths begin with there. */
export function rootOf(script) {
  const { pathname } = new URL(script);
  return pathname.slice(0, Math.max(0, pathname.lastIndexOf("/web/")));
}

// On a page of another server this script is a part of the element <weir-player>.
export const isOurs = globalThis.location?.origin === new URL(import.meta.url).origin;
/** What paths on this server begin with: nothing, but behind a proxy that has other things at the root of its name. */
export const root = isOurs ? rootOf(import.meta.url) : "";
/** The same with the viewer's token, if the page's own path has one. */
export const base = root + (/^\/~[^/]*/.exec(globalThis.location?.pathname.slice(root.length) ?? "")?.[0] ?? "");
