/** The panel of the watch page for a stream whose publisher is a source of the server: its state, buttons and devices. */

import { change, fetchFrame, hasToken } from "../api/admin.js";
import { fetchOverview } from "../api/api.js";
import { root } from "../media/root.js";
import { t } from "../strings/strings.js";
import { confirmButton } from "../ui/confirm-button.js";
import { announce, byId, setText } from "../ui/dom.js";
import { DeviceMenu } from "./device-menu.js";
import { SourceFilm } from "./source-film.js";
import { SOURCE_KINDS, sourceBadge } from "./source-names.js";

const ASK_MILLISECONDS = 2000;
const RETRY_MILLISECONDS = 5000;
/** Questions without an answer, one after the other, until the state counts as unknown. A film goes on meanwhile. */
const MOST_UNANSWERED = 3;
/** How long the server's response to a click is shown. */
const ANSWER_MILLISECONDS = 15_000;

export class SourcePanel {
  #panel = byId("source", HTMLElement);
  #badge = byId("source-state", HTMLElement);
  #kind = byId("source-kind", HTMLElement);
  #reason = byId("source-reason", HTMLElement);
  #start = byId("source-start", HTMLButtonElement);
  #preview = byId("source-preview", HTMLButtonElement);
  #stop = byId("source-stop", HTMLButtonElement);
  #frame = byId("source-frame", HTMLCanvasElement);
  #video = byId("source-film", HTMLVideoElement);
  #film;
  /** The text of the preview button. */
  #previewWord;
  #name;
  #session;
  #admin;
  #devices;
  /** Whether the server has an admin token. */
  #isWritable = false;
  /** @type {import("../api/api.js").LocalSource | null} The last state from the server; it needs the admin token. */
  #source = null;
  #askedAt = -Infinity;
  #unanswered = 0;
  /** @type {string | null} Error message of the last click. */
  #answer = null;
  #answeredAt = -Infinity;

  /**
   * @param {string} name Name of the stream.
   * @param {import("../engine/session.js").WatchSession} session
   * @param {import("./admin-dialog.js").AdminDialog} admin
   */
  constructor(name, session, admin) {
    this.#name = name;
    this.#session = session;
    this.#admin = admin;
    this.#film = new SourceFilm(this.#video, this.#address("/preview.mp4"));
    this.#devices = new DeviceMenu((subject, device) =>
      this.#control(`${root}/api/v1/streams/${encodeURIComponent(name)}/capture/${subject}`, device, t("source.switched")));
    this.#start.addEventListener("click", () => this.#control(this.#address("/start"), undefined, t("source.onAir")));
    // These end the stream for all viewers, so they need a confirmation.
    const isLive = () => this.source?.state === "live";
    this.#previewWord = confirmButton(
      this.#preview, () => this.#control(this.#address("/preview"), undefined, t("source.isOffAir")), isLive);
    confirmButton(this.#stop, () => this.#control(this.#address("/stop"), undefined, t("source.isStopped")), isLive);
    this.#learn();
  }

  #address(path = "") { return `${root}/api/v1/sources/${encodeURIComponent(this.#name)}${path}`; }

  async #learn() {
    try {
      this.#isWritable = (await fetchOverview()).writable === true;
      this.refresh();
    } catch {
      setTimeout(() => this.#learn(), RETRY_MILLISECONDS);
    }
  }

  /** The last state from the server; null if the publisher is no source of the server, or without a token. */
  get source() { return hasToken() ? this.#source : null; }

  /** The kind of the stream's publisher, if that is a source of the server. */
  get #ownKind() {
    const kind = this.#source?.kind ?? this.#session.stream?.protocol ?? "";
    return SOURCE_KINDS.find((known) => known === kind) ?? null;
  }

  /** Fetches the state of the source. */
  async ask() {
    this.#askedAt = performance.now();
    this.#admin.refresh();
    try {
      const list = hasToken() ? await change("GET", `${root}/api/v1/sources`) : { sources: [] };
      this.#source = list.sources.find((/** @type {import("../api/api.js").LocalSource} */ s) => s.name === this.#name) ?? null;
      this.#unanswered = 0;
    } catch {
      this.#unanswered += 1;
      // A token that is refused is forgotten.
      if (!hasToken() || this.#unanswered >= MOST_UNANSWERED) this.#source = null;
    }
    this.refresh();
    if (this.#source?.state === "preview" && !this.#film.isShown) await this.#showFrame();
  }

  /** Shows the newest captured frame of a preview, which viewers do not see, until its film plays, or where it cannot. */
  async #showFrame() {
    const frame = await fetchFrame(this.#address("/preview.jpg")).catch(() => null);
    if (frame === null) return;
    this.#frame.width = frame.width;
    this.#frame.height = frame.height;
    this.#frame.getContext("2d")?.drawImage(frame, 0, 0);
    frame.close();
  }

  /** @param {string} path @param {string | undefined} body @param {string} done */
  async #control(path, body, done) {
    this.#answer = null;
    try {
      await change("POST", path, body);
      announce(done);
    } catch (error) {
      this.#answer = error instanceof Error ? error.message : t("page.failed");
      this.#answeredAt = performance.now();
      if (!hasToken()) this.#admin.open();
    }
    await Promise.all([this.ask(), this.#session.retry()]);
    this.refresh();
  }

  /** Updates the panel. */
  refresh() {
    const now = performance.now();
    if (this.#isWritable && hasToken() && !document.hidden && now - this.#askedAt > ASK_MILLISECONDS) this.ask();
    const kind = this.#ownKind;
    const { source } = this;
    this.#panel.hidden = !this.#isWritable || kind === null || (hasToken() && source === null);
    this.#film.want(!this.#panel.hidden && source?.state === "preview" && !document.hidden);
    if (this.#panel.hidden || kind === null) return;
    const state = source?.state ?? (this.#session.stream?.state === "ended" ? "stopped" : "live");
    this.#badge.dataset.state = sourceBadge(state);
    setText(this.#badge, t(`sourceState.${state}`));
    setText(this.#kind, t(`source.${kind}`));
    this.#start.hidden = source === null || state === "live";
    this.#preview.hidden = source === null || state === "preview";
    this.#previewWord.setWord(t(state === "live" ? "source.offAir" : "source.preview"));
    this.#stop.hidden = source === null || state === "stopped" || state === "stopping";
    this.#video.hidden = !this.#film.isShown;
    this.#frame.hidden = state !== "preview" || this.#film.isShown;
    if (now - this.#answeredAt > ANSWER_MILLISECONDS) this.#answer = null;
    const { video = null, audio = null } = source?.capture ?? {};
    const reason = this.#answer ?? source?.reason ?? video?.problem ?? audio?.problem ?? source?.reception?.problem ?? null;
    this.#reason.hidden = reason === null;
    setText(this.#reason, reason ?? "");
    this.#devices.show(kind === "capture" ? source?.capture ?? null : null);
  }
}
