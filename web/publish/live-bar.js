/** The figures of a running publication: what this browser sends, and what the server says that it receives. */

import { fetchStreamNow } from "../api/api.js";
import { between, ServerView, Slowness } from "../media/sending-figures.js";
import { t } from "../strings/strings.js";
import { byId, make, setText } from "../ui/dom.js";
import * as format from "../ui/format.js";

const SENT_MILLISECONDS = 1000;
const SERVER_MILLISECONDS = 2000;

const ROWS = /** @type {const} */ (["time", "rate", "video", "roundTrip", "loss", "server"]);

/** Events: `stream`, whose detail is the stream as the API has it; `slow`, while this machine sends too few frames. */
export class LiveBar extends EventTarget {
  #list = byId("figures", HTMLElement);
  /** @type {Record<string, HTMLElement>} */
  #cells = {};
  #name;
  #sender;
  #wanted;
  #view = new ServerView();
  #slowness = new Slowness();
  /** @type {import("../media/sending-figures.js").Sent | null} */
  #before = null;
  #timers;

  /**
   * @param {string} name @param {import("./sender.js").Sender} sender
   * @param {() => number | null} wanted Frames per second of the present video; null if they are not known.
   */
  constructor(name, sender, wanted) {
    super();
    this.#name = name;
    this.#sender = sender;
    this.#wanted = wanted;
    this.#list.replaceChildren(...ROWS.map((row) => {
      this.#cells[row] = make("dd", "", "–");
      return make("div", row === "server" ? "wide" : "", make("dt", "", t(`publishFigure.${row}`)), this.#cells[row]);
    }));
    this.#list.hidden = false;
    this.#timers = [setInterval(() => this.#showSent(), SENT_MILLISECONDS), setInterval(() => this.#ask(), SERVER_MILLISECONDS)];
    this.#ask();
  }

  async #showSent() {
    setText(this.#cells.time, format.duration((performance.now() - (this.#sender.startedAt ?? performance.now())) / 1000));
    const now = await this.#sender.figures().catch(() => null);
    const figures = now !== null && this.#before !== null ? between(this.#before, now) : null;
    this.#before = now;
    if (now === null || figures === null) return;
    if (this.#sender.state === "live" && this.#slowness.add(figures.frameRate, this.#wanted(), now.limited)) this.dispatchEvent(new Event("slow"));
    setText(this.#cells.rate, format.bitrate(figures.bitrate));
    const limit = now.limited === "cpu" || now.limited === "bandwidth" ? t(`publishLimit.${now.limited}`) : "";
    const size = now.width !== null ? `${now.width}×${now.height}` : "";
    setText(this.#cells.video, [size, format.frameRate(Math.round(figures.frameRate)), limit].filter(Boolean).join(" · "));
    setText(this.#cells.roundTrip, now.roundTrip === null ? "–" : t("unit.milliseconds", { value: Math.round(now.roundTrip * 1000) }));
    setText(this.#cells.loss, t("unit.percent", { value: format.number(Math.round(figures.loss * 1000) / 10) }));
  }

  async #ask() {
    const stream = await fetchStreamNow(this.#name).catch(() => null);
    if (stream === "hidden") {
      setText(this.#cells.server, t("publishFigure.hidden"));
      clearInterval(this.#timers[1]);
      return;
    }
    if (stream === null) return;
    this.dispatchEvent(new CustomEvent("stream", { detail: stream }));
    if (stream.received === undefined || stream.state === "ended") return;
    this.#view.add(performance.now(), stream.received);
    const { figures } = this.#view;
    if (figures === null) return;
    const words = [format.frameRate(Math.round(figures.frameRate * 10) / 10)];
    if (figures.keyFrameSeconds !== null) words.push(t("publishFigure.keyFrames", { time: format.seconds(figures.keyFrameSeconds) }));
    words.push(t("publishFigure.lost", { count: figures.lost }));
    setText(this.#cells.server, words.join(", "));
  }

  end() {
    for (const timer of this.#timers) clearInterval(timer);
    this.#list.hidden = true;
  }
}
