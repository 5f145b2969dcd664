/** Controls the playhead: keeps it near the live edge, catches up by a higher playback rate, and skips gaps. */

/** Initial target: seconds of media that should be left ahead of the playhead just before new media arrives. */
const FIRST_TARGET = 0.3;
const LARGEST_TARGET = 4;
/** Seconds that each stall adds to the target, and that each minute without a stall subtracts. */
const STALL_ADDS = 0.4;
const CALM_TAKES = 0.1;
const CALM_MILLISECONDS = 60_000;
/** If the playhead is this many seconds farther behind than the target, it jumps to the edge. */
const JUMP_OVER = 8;
/** Catching up starts this many seconds above the target. It stops when the target is nearly met. */
const CATCH_UP_OVER = 0.2;
const CATCH_UP_UNTIL = 0.05;
const CATCH_UP_RATE = 1.03;
/** Above this many seconds over the target the rate is higher. The browser keeps the pitch. */
const LATE_OVER = 0.6;
const LATE_RATE = 1.08;
/** Below this share of the target, playback slows down until SLOW_UNTIL of the target is buffered. */
const SLOW_BELOW = 0.3;
const SLOW_UNTIL = 0.8;
const SLOW_RATE = 0.96;
/** After a stall of the decoder, playback does not catch up for this long. */
const NO_CATCH_UP_MILLISECONDS = 15_000;
/** The reserve is the smallest distance to the edge within this time. It excludes the jump that each arrival causes. */
const MEMORY_MILLISECONDS = 2000;
/** At the start the server sends past media in one burst. The playhead is placed after this time without new media. */
const SETTLE_MILLISECONDS = 150;
/** Number of arrivals whose length is remembered. The next arrival may be as long as the longest of them. */
const ARRIVALS = 4;
/** A step of more seconds than this is a change of position, not an arrival of media. */
const LONGEST_ARRIVAL = 15;
/** A viewer this many seconds above the target after a pause stays behind the edge. */
const STAYS_BEHIND = 3;

export class LiveEdge {
  /** Minimum of the target in seconds, set by the delivery: a polled playlist is late by its polling interval. */
  floor = 0;
  stalls = 0;
  /** Whether playback follows the live edge. False after the viewer has sought back. */
  isFollowed = true;
  #video;
  /** @type {{at: number, behind: number}[]} */
  #seen = [];
  #wanted = FIRST_TARGET;
  #placed = false;
  #settling = 0;
  /** @type {number[]} Seconds of media that each of the last arrivals added. */
  #steps = [];
  /** @type {number | null} */
  #lastEnd = null;
  #mayCatchUpAt = 0;
  /** Time of the last stall or of the last reduction of the target. */
  #calmSince = performance.now();

  /** @param {HTMLVideoElement} video @param {AbortSignal} [signal] Aborts when the element is used for other media. */
  constructor(video, signal) {
    this.#video = video;
    video.addEventListener("waiting", () => this.#stalled(), { signal });
  }

  /** Seconds of media that should be ahead of the playhead just before new media arrives. */
  get target() { return Math.max(this.#wanted, this.floor); }
  /** Distance to the end of the media just after an arrival, in seconds. */
  get delay() { return this.target + Math.max(0, ...this.#steps); }
  /** Whether the playhead has been placed. False while it waits for media at its position. */
  get isPlaced() { return this.#placed; }

  /** Seconds between the playhead and the end of the buffered media. */
  get behind() {
    const end = this.end;
    return end === null ? 0 : Math.max(0, end - this.#video.currentTime);
  }

  /** Time at which the buffered media ends, in seconds; null without media. */
  get end() {
    const { buffered } = this.#video;
    return buffered.length === 0 ? null : buffered.end(buffered.length - 1);
  }

  /** Discards all measurements. The playhead is placed anew when media arrives. */
  reset() {
    this.#placed = false;
    this.#lastEnd = null;
    clearTimeout(this.#settling);
    this.#settling = 0;
    this.#forget();
  }

  /**
   * The viewer chose a position behind the edge.
   * @param {"buffered" | "pending"} media Whether the media at that position is buffered or must still be loaded.
   */
  stay(media) {
    this.reset();
    this.#placed = media === "buffered";
    this.isFollowed = false;
  }

  /** Must be called when media was appended. */
  arrived() {
    this.#measure();
    if (this.#placed || this.#settling !== 0 || this.end === null) return;
    if (!this.isFollowed) {
      this.#placed = true;
      return;
    }
    this.#settling = setTimeout(() => {
      this.#placed = true;
      this.#settling = 0;
      this.jump();
    }, SETTLE_MILLISECONDS);
  }

  /** Moves the playhead to the end of the buffered media, minus the delay that avoids stalls. */
  jump() {
    const { buffered } = this.#video;
    this.isFollowed = true;
    if (buffered.length === 0) return;
    const last = buffered.length - 1;
    this.#video.currentTime = Math.max(buffered.start(last), buffered.end(last) - this.delay);
    this.#forget();
  }

  /** Called after a pause. A short pause is caught up. After a long one, playback continues behind the edge. */
  resumed() {
    if (this.#placed && this.behind > this.delay + STAYS_BEHIND) this.isFollowed = false;
  }

  /** Must be called a few times per second. */
  tick() {
    const video = this.#video;
    if (this.#placed && this.#overHole()) return;
    if (!this.#placed || video.seeking || video.paused) {
      this.#seen = [];
      return;
    }
    const now = performance.now();
    this.#seen = this.#seen.filter((s) => now - s.at < MEMORY_MILLISECONDS);
    this.#seen.push({ at: now, behind: this.behind });
    if (!this.isFollowed) {
      this.#play(1);
      return;
    }
    const reserve = Math.min(...this.#seen.map((s) => s.behind));
    if (reserve > this.target + JUMP_OVER) this.jump();
    else this.#play(this.#rate(reserve, now));
    if (now - this.#calmSince > CALM_MILLISECONDS && this.#wanted > FIRST_TARGET) {
      this.#wanted = Math.max(FIRST_TARGET, this.#wanted - CALM_TAKES);
      this.#calmSince = now;
    }
  }

  /** @param {number} reserve Seconds. @param {number} now @returns {number} The playback rate for this reserve. */
  #rate(reserve, now) {
    const rate = this.#video.playbackRate;
    if (reserve < this.target * (rate < 1 ? SLOW_UNTIL : SLOW_BELOW)) return SLOW_RATE;
    if (reserve < this.target + (rate > 1 ? CATCH_UP_UNTIL : CATCH_UP_OVER)) return 1;
    const isMeasured = now - this.#seen[0].at > MEMORY_MILLISECONDS / 2;
    if (!isMeasured || now <= this.#mayCatchUpAt) return rate > 1 ? rate : 1;
    return reserve > this.target + LATE_OVER ? LATE_RATE : CATCH_UP_RATE;
  }

  /** @param {number} rate */
  #play(rate) {
    if (this.#video.playbackRate !== rate) this.#video.playbackRate = rate;
  }

  #forget() {
    this.#seen = [];
    this.#play(1);
  }

  /** Measures how much media the last arrival added. */
  #measure() {
    const end = this.end, last = this.#lastEnd;
    this.#lastEnd = end;
    if (end === null || last === null || end < last + 0.005) return;
    const step = end - last;
    if (step > LONGEST_ARRIVAL) return;
    this.#steps = [...this.#steps, step].slice(-ARRIVALS);
  }

  #stalled() {
    if (!this.#placed || this.#video.seeking || this.#video.paused) return;
    this.stalls += 1;
    this.#calmSince = performance.now();
    this.#play(1);
    if (!this.isFollowed) return;
    // Media is buffered, so the decoder was late. Neither a higher rate nor a larger target helps.
    if (this.behind > this.target) {
      this.#mayCatchUpAt = performance.now() + NO_CATCH_UP_MILLISECONDS;
      return;
    }
    this.#wanted = Math.min(LARGEST_TARGET, this.#wanted + STALL_ADDS);
  }

  /**
   * Moves a playhead that stands before a gap, or outside of all buffered ranges, to the next media.
   * @returns {boolean} Whether it was moved.
   */
  #overHole() {
    const { buffered, currentTime, readyState, seeking } = this.#video;
    if (readyState >= HTMLMediaElement.HAVE_FUTURE_DATA) return false;
    // Browsers play over the smallest gaps. Firefox does not end a seek right before one.
    const smallest = seeking ? 0 : 0.05;
    for (let n = 0; n < buffered.length; n += 1) {
      if (buffered.start(n) <= currentTime + smallest) continue;
      if (n > 0 && buffered.end(n - 1) > currentTime + 0.3) continue;
      this.#video.currentTime = buffered.start(n) + 0.01;
      return true;
    }
    return false;
  }
}
