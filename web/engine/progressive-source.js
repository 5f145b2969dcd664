/** Loads the endless `stream.mp4`: cuts the bytes into fragments as they arrive, and appends these to the buffers. */

import { PieceSplitter, readInit, startSeconds } from "../media/boxes.js";
import { failure, refusal } from "../media/playback-result.js";

/** A connection that delivers no data for this long has failed. */
const SILENCE_MILLISECONDS = 10_000;
/** The download stops if a paused viewer is more than this many seconds of media behind. */
const PAUSE_BUFFER = 20;
/** A response continues the timeline if it starts within this many seconds around the end of the buffer. */
const CONTINUES = { before: 15, after: 30 };

export class ProgressiveSource {
  #video;
  #url;
  #intent;
  #buffers;
  #edge;
  #headers;
  /** @type {Uint8Array} The last appended init segment. */
  #init = new Uint8Array();
  /** @type {import("../media/boxes.js").InitTrack[]} */
  #tracks = [];

  /**
   * @param {HTMLVideoElement} video
   * @param {string} url
   * @param {{plays: boolean}} intent Whether the viewer wants playback.
   * @param {import("./source-buffers.js").SourceBuffers} buffers
   * @param {import("./live-edge.js").LiveEdge} edge
   * @param {() => Record<string, string>} headers Those of the request.
   */
  constructor(video, url, intent, buffers, edge, headers = () => ({})) {
    this.#video = video;
    this.#url = url;
    this.#intent = intent;
    this.#buffers = buffers;
    this.#edge = edge;
    this.#headers = headers;
  }

  /**
   * Plays until the response ends. Resolves with the reason; never throws.
   * @param {string} publication
   * @param {AbortSignal} signal
   * @returns {Promise<import("../media/playback-result.js").PlaybackResult>}
   */
  async run(publication, signal) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop);
    let timedOut = false;
    let watchdog = 0;
    const received = () => {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => { timedOut = true; stop(); }, SILENCE_MILLISECONDS);
    };
    try {
      received();
      const response = await fetch(this.#url, { cache: "no-store", headers: this.#headers(), signal: connection.signal });
      if (!response.ok || !response.body) return await refusal(response);
      const splitter = new PieceSplitter();
      const reader = response.body.getReader();
      let fresh = true;
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return { kind: "finished" };
        clearTimeout(watchdog);
        for (const piece of splitter.push(value)) {
          if (piece.kind === "init") {
            await this.#begin(piece.bytes, publication);
            fresh = true;
          } else {
            if (fresh) await this.#place(piece.bytes, publication);
            fresh = false;
            await this.#buffers.append("main", piece.bytes);
            this.#edge.arrived();
          }
          if (signal.aborted) return { kind: "stopped" };
        }
        await this.#buffers.trim();
        if (this.#video.paused && !this.#intent.plays && this.#edge.behind > PAUSE_BUFFER) return { kind: "paused" };
        received();
      }
    } catch (error) {
      if (signal.aborted) return { kind: "stopped" };
      return timedOut ? { kind: "lost", reason: "no data received for 10 seconds" } : failure(error);
    } finally {
      clearTimeout(watchdog);
      signal.removeEventListener("abort", stop);
      connection.abort();
    }
  }

  /**
   * Takes an init segment. Keeps the present buffer where that is possible, else starts a new one.
   * @param {Uint8Array} init
   * @param {string} publication
   * @param {boolean} restart
   */
  async #begin(init, publication, restart = false) {
    const tracks = readInit(init);
    if (tracks.length === 0) throw new Error("the init segment announces no track");
    if (await this.#buffers.prepare([{ key: "main", tracks }], publication, restart)) this.#edge.reset();
    await this.#buffers.append("main", init);
    this.#tracks = tracks;
    this.#init = init;
  }

  /**
   * Checks where the first fragment of a response lies. If it does not continue the timeline, a new buffer is started.
   * @param {Uint8Array} media
   * @param {string} publication
   */
  async #place(media, publication) {
    const start = startSeconds(media, this.#tracks);
    const end = this.#edge.end;
    if (start === null || end === null) return;
    // After playback far back in the window, the edge is far ahead of the buffer.
    const continues = start >= end - CONTINUES.before && (start <= end + CONTINUES.after || !this.#edge.isPlaced);
    if (!continues) await this.#begin(this.#init, publication, true);
  }
}
