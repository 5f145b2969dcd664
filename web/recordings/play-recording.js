/** Plays a recording in the page's dialog. The scripts of the dialog are loaded on first use. */

/** @param {import("../api/api.js").Recording} recording @param {number} [at] Seconds at which it begins to play. */
export async function playRecording(recording, at = 0) {
  const { openRecording } = await import("./recording-dialog.js");
  openRecording(recording, at);
}
