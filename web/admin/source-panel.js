/** What the watch page tells of a publisher that is part of the server, and what starts, stops and switches it. */

import { change, fetchFrame, hasToken } from "../api/admin.js";
import { fetchOverview } from "../api/api.js";
import { confirmButton } from "../ui/confirm-button.js";
import { announce, byId, setText } from "../ui/dom.js";
import { DeviceMenu } from "./device-menu.js";
import { OFF_AIR, SOURCE_KINDS, SOURCE_STATES, sourceBadge } from "./source-names.js";

const ASK_MILLISECONDS = 2000;
const RETRY_MILLISECONDS = 5000;
/** What the server said to a click stays for so long. */
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
  /** The word on the button that makes a preview. */
  #previewWord;
  #name;
  #session;
  #admin;
  #devices;
  /** Whether the server has an admin token. */
  #isWritable = false;
  /** @type {import("../api/api.js").OwnSource | null} As the server last said; only who has the token is told. */
  #source = null;
  #askedAt = -Infinity;
  /** @type {string | null} Why the last click did nothing. */
  #answer = null;
  #answeredAt = -Infinity;

  /**
   * @param {string} name Of the stream.
   * @param {import("../engine/session.js").WatchSession} session
   * @param {import("./admin-dialog.js").AdminDialog} admin
   */
  constructor(name, session, admin) {
    this.#name = name;
    this.#session = session;
    this.#admin = admin;
    this.#devices = new DeviceMenu((subject, device) =>
      this.#control(`/api/v1/streams/${encodeURIComponent(name)}/capture/${subject}`, device, "Switched"));
    this.#start.addEventListener("click", () => this.#control(this.#address("/start"), undefined, "Source on air"));
    // All who watch are told that the stream has ended.
    const isLive = () => this.source?.state === "live";
    this.#previewWord = confirmButton(
      this.#preview, () => this.#control(this.#address("/preview"), undefined, "Source off air"), isLive);
    confirmButton(this.#stop, () => this.#control(this.#address("/stop"), undefined, "Source stopped"), isLive);
    this.#learn();
  }

  #address(path = "") { return `/api/v1/sources/${encodeURIComponent(this.#name)}${path}`; }

  async #learn() {
    try {
      this.#isWritable = (await fetchOverview()).writable === true;
      this.refresh();
    } catch {
      setTimeout(() => this.#learn(), RETRY_MILLISECONDS);
    }
  }

  /** As the server last said; null where the publisher is no part of it, or the token is missing. */
  get source() { return hasToken() ? this.#source : null; }

  /** The kind of the stream's publisher, where that is part of the server. */
  get #ownKind() {
    const kind = this.#source?.kind ?? this.#session.stream?.protocol ?? "";
    return kind in SOURCE_KINDS ? /** @type {keyof typeof SOURCE_KINDS} */ (kind) : null;
  }

  /** Asks the server how the source is. */
  async ask() {
    this.#askedAt = performance.now();
    this.#admin.refresh();
    try {
      const list = hasToken() ? await change("GET", "/api/v1/sources") : { sources: [] };
      this.#source = list.sources.find((/** @type {import("../api/api.js").OwnSource} */ s) => s.name === this.#name) ?? null;
    } catch {
      this.#source = null;
    }
    this.refresh();
    if (this.#source?.state === "preview") await this.#showFrame();
  }

  /** What is captured and offered to nobody. */
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
      this.#answer = error instanceof Error ? error.message : "The request failed.";
      this.#answeredAt = performance.now();
      if (!hasToken()) this.#admin.open();
    }
    await Promise.all([this.ask(), this.#session.retry()]);
    this.refresh();
  }

  /** Shows what is. */
  refresh() {
    const now = performance.now();
    if (this.#isWritable && hasToken() && !document.hidden && now - this.#askedAt > ASK_MILLISECONDS) this.ask();
    const kind = this.#ownKind;
    const { source } = this;
    this.#panel.hidden = !this.#isWritable || kind === null || (hasToken() && source === null);
    if (this.#panel.hidden || kind === null) return;
    const state = source?.state ?? (this.#session.stream?.state === "ended" ? "stopped" : "live");
    this.#badge.dataset.state = sourceBadge(state);
    setText(this.#badge, SOURCE_STATES[state]);
    setText(this.#kind, SOURCE_KINDS[kind]);
    this.#start.hidden = source === null || state === "live";
    this.#preview.hidden = source === null || state === "preview";
    this.#previewWord.setWord(state === "live" ? OFF_AIR : "Preview");
    this.#stop.hidden = source === null || state === "stopped" || state === "stopping";
    this.#frame.hidden = state !== "preview";
    if (now - this.#answeredAt > ANSWER_MILLISECONDS) this.#answer = null;
    const { video = null, audio = null } = source?.capture ?? {};
    const reason = this.#answer ?? source?.reason ?? video?.problem ?? audio?.problem ?? null;
    this.#reason.hidden = reason === null;
    setText(this.#reason, reason ?? "");
    this.#devices.show(kind === "capture" ? source?.capture ?? null : null);
  }
}
