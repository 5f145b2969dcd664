/** The page for addresses that do not exist. It shows the address and the probable reason. */

import { byId, setText } from "../ui/dom.js";
import { isStreamName, NAME_GRAMMAR } from "../ui/links.js";

setText(byId("address", HTMLElement), location.pathname);
setText(byId("reason", HTMLElement), reason(location.pathname.split("/").filter(Boolean)));

/** @param {string[]} path @returns {string} */
function reason([kind, name, file]) {
  if (kind === "watch" && !isStreamName(name ?? "")) return `No stream can have that name. ${NAME_GRAMMAR}`;
  if (kind === "recordings" && file) return "There is no such recording. It may have been deleted, or it is not finished yet.";
  return "The address may be mistyped, or the page no longer exists.";
}
