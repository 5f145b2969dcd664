/** The panels below the player: recording, source, links and commands. They are loaded after the first frame. */

import { AdminDialog } from "../admin/admin-dialog.js";
import { SourcePanel } from "../admin/source-panel.js";
import { showTools } from "../admin/tools.js";
import { fetchOverview } from "../api/api.js";
import { LastRecording } from "../recordings/last-recording.js";
import { LiveClip } from "../recordings/live-clip.js";
import { RecordingPanel } from "../recordings/recording-panel.js";
import { base } from "../media/root.js";
import { byId, plain } from "../ui/dom.js";
import { publishRows, shareRows, watchRows } from "../ui/links.js";
import { keepAwake } from "../ui/wake-lock.js";

const RETRY_MILLISECONDS = 5000;

/** @param {string} name Name of the stream. @param {import("../engine/session.js").WatchSession} session */
export function openPanels(name, session) {
  const admin = new AdminDialog([byId("manage", HTMLButtonElement)], () => {
    showLinks(name, session);
    recording.refresh();
    source.ask();
  });
  const source = new SourcePanel(name, session, admin);
  const recording = new RecordingPanel(name, session, admin, source);
  const lastRecording = new LastRecording(name);
  const clip = new LiveClip(name, byId("video", HTMLVideoElement), session, byId("actions", HTMLElement));
  showLinks(name, session);
  for (const id of ["video", "source-film"]) keepAwake(byId(id, HTMLVideoElement));
  return {
    refresh() {
      lastRecording.refresh(session.phase);
      clip.refresh();
      recording.refresh();
      source.refresh();
    },
  };
}

/** @param {string} name @param {import("../engine/session.js").WatchSession} session */
async function showLinks(name, session) {
  try {
    const overview = await fetchOverview();
    const title = plain(session.stream?.title ?? "") || name;
    byId("share-rows", HTMLElement).replaceChildren(...shareRows(name, title, overview));
    showTools(overview);
    byId("manage", HTMLButtonElement).hidden = overview.writable !== true;
    const recordings = byId("recordings-link", HTMLAnchorElement);
    recordings.hidden = overview.records === false;
    recordings.href = `${base}/recordings?stream=${encodeURIComponent(name)}`;
    byId("watch-rows", HTMLElement).replaceChildren(...watchRows(name, overview));
    byId("publish-rows", HTMLElement).replaceChildren(...publishRows(name, overview));
  } catch {
    setTimeout(() => showLinks(name, session), RETRY_MILLISECONDS);
  }
}
