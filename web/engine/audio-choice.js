/** The audio track that the viewer chose last, by its name, for all streams. */

const KEY = "weir.audio";

/** @returns {string} "" if there is none. */
export function rememberedAudio() {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

/** @param {string} name */
export function rememberAudio(name) {
  try {
    localStorage.setItem(KEY, name);
  } catch {
    // The browser stores nothing for this page.
  }
}
