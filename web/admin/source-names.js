/** What people call the server's own sources, and what these do. */

export const SOURCE_KINDS = { test: "Test pattern", file: "File", capture: "Camera and microphone" };
/** What a preview of a source means that is on air. */
export const OFF_AIR = "Take off air";
export const SOURCE_STATES = { live: "Live", preview: "Off air", stopping: "Stopping", stopped: "Stopped" };

/** @param {import("../api/api.js").OwnSource["state"]} state @returns {string} The badge's. */
export const sourceBadge = (state) => (state === "live" ? "live" : state === "preview" ? "completed" : "ended");
