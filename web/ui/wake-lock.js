/** Keeps the screen on while a video plays, or something else needs it. Browsers allow it on secure pages that are visible. */

/** @type {Set<object>} What needs it: videos, and others. */
const playing = new Set();
/** @type {Promise<WakeLockSentinel | null> | null} The lock, or the request for it; null without one. */
let lock = null;

function update() {
  if (playing.size > 0 && !document.hidden && "wakeLock" in navigator) {
    // A refusal (a low battery) is no error.
    lock ??= navigator.wakeLock.request("screen").catch(() => null);
  } else {
    lock?.then((held) => held?.release());
    lock = null;
  }
}

/** @param {object} who @param {boolean} isNeeded Whether it needs the screen now. */
export function stayAwake(who, isNeeded) {
  if (isNeeded) playing.add(who);
  else playing.delete(who);
  update();
}

/** @param {HTMLVideoElement} video */
export function keepAwake(video) {
  if (!video.paused) playing.add(video);
  update();
  video.addEventListener("playing", () => { playing.add(video); update(); });
  for (const end of ["pause", "ended", "emptied"]) {
    video.addEventListener(end, () => { playing.delete(video); update(); });
  }
}

// The browser releases the lock of a page that is hidden.
document.addEventListener("visibilitychange", update);
