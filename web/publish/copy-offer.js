/** The files of the copy in this browser, offered after the network was gone. */

import { many, t } from "../strings/strings.js";
import { byId, icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";
import { LocalCopy } from "./local-copy.js";

/** @type {string[]} Addresses of files that are offered. */
let addresses = [];

/** Whether files are offered that nothing else has. */
export const isCopyOffered = () => addresses.length > 0;

/**
 * Offers its files in place of those that were offered before.
 * @param {string} name Of the stream.
 * @param {LocalCopy} copy
 */
export function offerCopy(name, copy) {
  const { parts } = copy;
  if (parts.length === 0) return;
  for (const address of addresses) URL.revokeObjectURL(address);
  addresses = [];
  byId("copies", HTMLElement).hidden = false;
  setText(byId("copies-text", HTMLElement), many("publish.copyOffer", parts.length));
  byId("copies-list", HTMLElement).replaceChildren(...parts.map((part) => {
    const address = URL.createObjectURL(LocalCopy.fileOf(part));
    addresses.push(address);
    const times = t("publish.copyTimes", { from: format.timeOfDay(part.startedAt), to: format.timeOfDay(part.endedAt) });
    const link = /** @type {HTMLAnchorElement} */ (make("a", "button quiet", icon("download"), make("span", "", `${times}, ${format.size(part.bytes)}`)));
    link.href = address;
    link.download = LocalCopy.nameOf(name, part);
    return make("li", "", link);
  }));
}
