/** The texts for kinds and states of the server's own sources. */

export const SOURCE_KINDS = { test: "Test pattern", file: "File", capture: "Camera and microphone", udp: "MPEG-TS by UDP" };
/** Text of the preview button while the source is on air. */
export const OFF_AIR = "Take off air";
export const SOURCE_STATES = { live: "Live", preview: "Off air", stopping: "Stopping", stopped: "Stopped" };

/** @param {import("../api/api.js").OwnSource["state"]} state @returns {string} The state of its badge. */
export const sourceBadge = (state) => (state === "live" ? "live" : state === "preview" ? "completed" : "ended");
