/** Cuts a clip out of a live stream that is being recorded: its last seconds, or what lies between two moments. */

import { fetchClipLength, fetchRecording } from "../api/api.js";
import { base } from "../media/root.js";
import { t } from "../strings/strings.js";
import { icon, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";

/** Lengths of the buttons, in seconds. */
const LENGTHS = [15, 30, 60];
const USUAL_LENGTH = 30;
const SHORTEST = 0.2;
/** Longest clip that the server makes, in seconds. */
const LONGEST = 4 * 3600;
/** Media that may not be on the disk yet, in seconds. */
const UNWRITTEN = 1;
/** Time after which the server is asked again when the recording began. */
const RETRY_MILLISECONDS = 2000;

export class LiveClip {
  #video;
  #session;
  #name;
  #opener = /** @type {HTMLButtonElement} */ (make("button", "button quiet", icon("clip"), make("span", "", t("clip.title"))));
  #panel;
  #times = make("p", "clip-times");
  #download = /** @type {HTMLAnchorElement} */ (make("a", "button", icon("download"), make("span", "", t("clip.download"))));
  /** Milliseconds since 1970, by the wall clock of the stream. */
  #from = 0;
  #to = 0;
  /** Counts the clips that were chosen: a length that comes late is not that of the present one. */
  #asked = 0;
  /** When the recording began, by the same clock; null until the server has told it. */
  #begun = { file: "", at: /** @type {number | null} */ (null), askedAt: -Infinity };

  /**
   * @param {string} name Name of the stream.
   * @param {HTMLVideoElement} video
   * @param {import("../engine/session.js").WatchSession} session
   * @param {Element} place Gets the button; the panel comes behind it.
   */
  constructor(name, video, session, place) {
    this.#name = name;
    this.#video = video;
    this.#session = session;
    this.#opener.id = "clip-open";
    this.#opener.type = "button";
    this.#opener.setAttribute("aria-controls", "live-clip");
    this.#opener.setAttribute("aria-expanded", "false");
    this.#opener.hidden = true;
    this.#opener.addEventListener("click", () => this.#toggle());
    this.#download.id = "clip-download";
    this.#times.setAttribute("role", "status");
    const last = LENGTHS.map((length) => press(t("clip.last", { length: format.seconds(length, 0) }), () => this.#take(length)));
    this.#panel = make("section", "panel clip", this.#times, make("div", "clip-actions", ...last,
      press(t("clip.startHere"), () => this.#set("from")), press(t("clip.endHere"), () => this.#set("to")), this.#download));
    this.#panel.id = "live-clip";
    this.#panel.hidden = true;
    this.#panel.setAttribute("aria-label", t("clip.title"));
    place.append(this.#opener);
    place.after(this.#panel);
  }

  /** Updates the button. */
  refresh() {
    const isRunning = this.#session.stream?.recording?.state === "running" && this.#file !== null;
    if (isRunning) this.#askBeginning();
    const isThere = isRunning && this.#now !== null && this.#begun.at !== null;
    this.#opener.hidden = !isThere;
    if (!isThere) this.#show(false);
  }

  /** The file of the running recording under the name that it will have. */
  get #file() {
    const file = this.#session.stream?.recording?.file?.split("/").at(-1) ?? null;
    return file === null ? null : file.replace(/(\.part)?\.mp4$/, ".mp4");
  }

  /** The wall clock at the playhead. */
  get #now() { return this.#session.engine.dateAt(this.#video.currentTime); }

  async #askBeginning() {
    const file = this.#file, now = performance.now();
    if (file === null || file === this.#begun.file && (this.#begun.at !== null || now - this.#begun.askedAt < RETRY_MILLISECONDS)) return;
    const begun = this.#begun = { file, at: /** @type {number | null} */ (null), askedAt: now };
    begun.at = await fetchRecording(this.#name, file).then(({ startedAt }) => Date.parse(startedAt), () => null);
  }

  #toggle() {
    const isOpen = this.#panel.hidden;
    this.#show(isOpen);
    if (isOpen) this.#take(USUAL_LENGTH);
  }

  /** @param {boolean} isOpen */
  #show(isOpen) {
    this.#panel.hidden = !isOpen;
    this.#opener.setAttribute("aria-expanded", String(isOpen));
  }

  /** @param {number} length Seconds before the playhead. */
  #take(length) {
    const now = this.#now;
    if (now === null) return;
    this.#to = this.#session.atLiveEdge ? now - UNWRITTEN * 1000 : now;
    // The clip begins with the recording at the soonest.
    const soonest = Math.min(this.#begun.at ?? -Infinity, this.#to - SHORTEST * 1000);
    this.#from = Math.max(this.#to - length * 1000, soonest);
    this.#tell();
  }

  /** @param {"from" | "to"} edge */
  #set(edge) {
    const now = this.#now;
    if (now === null) return;
    if (edge === "from") [this.#from, this.#to] = [now, Math.max(this.#to, now + SHORTEST * 1000)];
    else [this.#from, this.#to] = [Math.min(this.#from, now - SHORTEST * 1000), now];
    this.#tell();
  }

  #tell() {
    const seconds = (this.#to - this.#from) / 1000;
    const isTooLong = seconds > LONGEST;
    if (isTooLong) setText(this.#times, t("clip.tooLong", { hours: LONGEST / 3600 }));
    else this.#say(seconds);
    const file = this.#file;
    this.#asked += 1;
    if (file === null || isTooLong) return this.#download.removeAttribute("href");
    const query = new URLSearchParams({ from: new Date(this.#from).toISOString(), to: new Date(this.#to).toISOString() });
    this.#download.href = `${base}/api/v1/recordings/${encodeURIComponent(this.#name)}/${encodeURIComponent(file)}/clip?${query}`;
    this.#askLength();
  }

  /** Says how long the clip is in its file: it begins with a whole frame, and has no outage. */
  async #askLength() {
    const asked = this.#asked;
    const length = await fetchClipLength(this.#download.href);
    if (length !== null && asked === this.#asked) this.#say(length);
  }

  /** @param {number} seconds The length of the clip. */
  #say(seconds) {
    setText(this.#times, t("clip.times", {
      from: format.timeOfDay(this.#from), to: format.timeOfDay(this.#to), length: format.seconds(seconds, 2) }));
  }
}

/** @param {string} word @param {() => void} act */
function press(word, act) {
  const button = /** @type {HTMLButtonElement} */ (make("button", "button quiet", word));
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}
