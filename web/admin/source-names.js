/** Kinds and states of the server's own sources. */

export const SOURCE_KINDS = /** @type {const} */ (["test", "file", "capture", "udp"]);

/** @param {import("../api/api.js").LocalSource["state"]} state @returns {string} The state of its badge. */
export const sourceBadge = (state) => (state === "live" ? "live" : state === "preview" ? "completed" : "ended");
