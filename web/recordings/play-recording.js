/** Plays a recording in the page's dialog, whose scripts are loaded for the first one. */

/** @param {import("../api/api.js").Recording} recording */
export async function playRecording(recording) {
  const { openRecording } = await import("./recording-dialog.js");
  openRecording(recording);
}
