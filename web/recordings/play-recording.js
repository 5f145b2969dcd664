/** Plays a recording in the page's dialog. The scripts of the dialog are loaded on first use. */

/** @param {import("../api/api.js").Recording} recording */
export async function playRecording(recording) {
  const { openRecording } = await import("./recording-dialog.js");
  openRecording(recording);
}
