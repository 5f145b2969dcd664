/** The page for addresses that do not exist. It shows the address and the probable reason. */

import "../ui/page-strings.js";
import { base, root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { byId, setText } from "../ui/dom.js";
import { isStreamName } from "../ui/links.js";

// The viewer's token, if the path has one, is not shown, and stays in links.
const path = location.pathname.slice(base.length);
setText(byId("address", HTMLElement), path);
setText(byId("reason", HTMLElement), reason(path.split("/").filter(Boolean)));
for (const link of /** @type {NodeListOf<HTMLAnchorElement>} */ (document.querySelectorAll("a[href^='/']"))) {
  link.href = base + (link.getAttribute("href") ?? "").slice(root.length);
}

/** @param {string[]} path @returns {string} */
function reason([kind, name, file]) {
  if ((kind === "watch" || kind === "embed") && name && !isStreamName(name)) return t("notFound.noName", { grammar: t("name.sentence") });
  if (kind === "recordings" && file) return t("notFound.noRecording");
  return t("notFound.mistyped");
}
