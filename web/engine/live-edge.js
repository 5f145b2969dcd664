/** Keeps the playhead where the viewer wants it: near the newest picture, gently caught up, and over holes. */

/** Seconds of media that should remain in the worst moment between two arrivals. */
const FIRST_TARGET = 0.3;
const LARGEST_TARGET = 4;
/** What each stall adds to the target, and what a calm minute takes back. */
const STALL_ADDS = 0.4;
const CALM_TAKES = 0.1;
const CALM_MILLISECONDS = 60_000;
/** Farther behind than this many seconds over the target, the playhead jumps and does not hurry. */
const JUMP_OVER = 8;
/** Hurrying starts this much over the target, and stops when the target is nearly met. */
const CATCH_UP_OVER = 0.2;
const CATCH_UP_UNTIL = 0.05;
const CATCH_UP_RATE = 1.03;
/** Farther behind than this many seconds over the target, the hurry is greater; pitch is kept by the browser. */
const LATE_OVER = 0.6;
const LATE_RATE = 1.08;
/** With less than this share of the target at hand, playing slows down until that much is there again. */
const SLOW_BELOW = 0.3;
const SLOW_UNTIL = 0.8;
const SLOW_RATE = 0.96;
/** How long a decoder that was late is not hurried. */
const NO_CATCH_UP_MILLISECONDS = 15_000;
/** The reserve is the smallest distance seen within this time: one arrival makes it jump up, playing wears it down. */
const MEMORY_MILLISECONDS = 2000;
/** Bytes of the past come in one burst at the start; the playhead is placed when it is over. */
const SETTLE_MILLISECONDS = 150;
/** Arrivals whose length in media is remembered: the next one may be as long as the longest of them. */
const ARRIVALS = 4;
/** More seconds than this are no arrival, but another place. */
const LONGEST_ARRIVAL = 15;
/** A viewer who stays this many seconds over the target is so by intent, for example after a pause. */
const STAYS_BEHIND = 3;

export class LiveEdge {
  /** What the delivery itself needs, in seconds: a playlist that is polled is late by its interval. */
  floor = 0;
  stalls = 0;
  /** Whether the viewer wants to be at the edge; who has sought back is left in peace. */
  isFollowed = true;
  #video;
  /** @type {{at: number, behind: number}[]} */
  #seen = [];
  #wanted = FIRST_TARGET;
  #placed = false;
  #settling = 0;
  /** @type {number[]} Seconds by which the newest arrivals moved the end. */
  #steps = [];
  /** @type {number | null} */
  #lastEnd = null;
  #mayCatchUpAt = 0;
  /** When the last stall or the last lowering of the target was. */
  #calmSince = performance.now();

  /** @param {HTMLVideoElement} video @param {AbortSignal} [signal] Aborts when others play in the element. */
  constructor(video, signal) {
    this.#video = video;
    video.addEventListener("waiting", () => this.#stalled(), { signal });
  }

  /** Seconds of media that should be ahead of the playhead just before the next ones arrive. */
  get target() { return Math.max(this.#wanted, this.floor); }
  /** Seconds behind the newest picture just after it arrived. */
  get delay() { return this.target + Math.max(0, ...this.#steps); }
  /** Whether the playhead is where it belongs, and does not wait for media to be placed in. */
  get isPlaced() { return this.#placed; }

  /** Seconds between the playhead and the newest picture here. */
  get behind() {
    const end = this.end;
    return end === null ? 0 : Math.max(0, end - this.#video.currentTime);
  }

  /** Seconds at which the newest picture here ends; null without media. */
  get end() {
    const { buffered } = this.#video;
    return buffered.length === 0 ? null : buffered.end(buffered.length - 1);
  }

  /** Nothing that was measured holds: the playhead is placed with the media that come next. */
  reset() {
    this.#placed = false;
    this.#lastEnd = null;
    clearTimeout(this.#settling);
    this.#settling = 0;
    this.#forget();
  }

  /**
   * The viewer chose a place behind the edge.
   * @param {"buffered" | "pending"} media Whether what is to be seen there is here, or will arrive.
   */
  stay(media) {
    this.reset();
    this.#placed = media === "buffered";
    this.isFollowed = false;
  }

  /** Media arrived. */
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

  /** Moves the playhead to the newest picture less the delay that plays without stalls. */
  jump() {
    const { buffered } = this.#video;
    this.isFollowed = true;
    if (buffered.length === 0) return;
    const last = buffered.length - 1;
    this.#video.currentTime = Math.max(buffered.start(last), buffered.end(last) - this.delay);
    this.#forget();
  }

  /** A pause is over: a short one is caught up, after a long one the viewer goes on where it began. */
  resumed() {
    if (this.#placed && this.behind > this.delay + STAYS_BEHIND) this.isFollowed = false;
  }

  /** To be called a few times each second. */
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

  /** @param {number} reserve Seconds. @param {number} now @returns {number} The speed that the reserve asks for. */
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

  /** How much media one arrival brings. */
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
    // With media at hand it is the decoder that is late, and neither hurry nor a larger reserve helps it.
    if (this.behind > this.target) {
      this.#mayCatchUpAt = performance.now() + NO_CATCH_UP_MILLISECONDS;
      return;
    }
    this.#wanted = Math.min(LARGEST_TARGET, this.#wanted + STALL_ADDS);
  }

  /**
   * A playhead before a hole, or outside of all that is buffered, moves to the next media.
   * @returns {boolean}
   */
  #overHole() {
    const { buffered, currentTime, readyState } = this.#video;
    if (readyState >= HTMLMediaElement.HAVE_FUTURE_DATA) return false;
    for (let n = 0; n < buffered.length; n += 1) {
      if (buffered.start(n) <= currentTime + 0.05) continue;
      if (n > 0 && buffered.end(n - 1) > currentTime + 0.3) continue;
      this.#video.currentTime = buffered.start(n) + 0.01;
      return true;
    }
    return false;
  }
}
