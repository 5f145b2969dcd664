/** The page for addresses that do not exist. It shows the address and the probable reason. */

import { byId, setText } from "../ui/dom.js";
import { isStreamName, NAME_GRAMMAR } from "../ui/links.js";

/** The viewer's token, if the path has one. It is not shown, and stays in links. */
const base = /^\/~[^/]*/.exec(location.pathname)?.[0] ?? "";
const path = location.pathname.slice(base.length);
setText(byId("address", HTMLElement), path);
setText(byId("reason", HTMLElement), reason(path.split("/").filter(Boolean)));
for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[href^='/']"))) {
  link.href = base + link.getAttribute("href");
}

/** @param {string[]} path @returns {string} */
function reason([kind, name, file]) {
  if ((kind === "watch" || kind === "embed") && name && !isStreamName(name)) return `No stream can have that name. ${NAME_GRAMMAR}`;
  if (kind === "recordings" && file) return "There is no such recording. It may have been deleted, or it is not finished yet.";
  return "The address may be mistyped, or the page no longer exists.";
}
