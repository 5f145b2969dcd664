/**
 * Position of the segments of a media playlist on the player's time axis, and their wall clock. It changes only by new
 * playlists and by the first media time that is read. It sends no requests.
 */

/** @typedef {import("./playlist.js").Segment} Segment */
/** @typedef {Segment & {start: number}} PlacedSegment `start`: seconds on the player's time axis. */

export class Timeline {
  /** @type {PlacedSegment[]} In order. */
  segments = [];
  /** Whether the axis is that of the media. Before that, it begins at 0 with the first segment seen. */
  isAnchored = false;
  /** Seconds before the end for which unlisted segments are kept, because the server still has them. */
  memory = 0;

  /**
   * The newest segment whose beginning can be fetched; null if there is none.
   * @returns {PlacedSegment | null}
   */
  get readable() {
    const whole = this.segments.findLast((s) => s.map !== null && s.complete && !s.gap);
    return whole ?? this.segments.findLast((s) => s.map !== null && !s.gap && s.parts[0]?.gap === false) ?? null;
  }

  /** Start of the first segment in seconds; null without segments. */
  get start() { return this.segments.at(0)?.start ?? null; }
  /** End of the newest media in seconds; null without segments. */
  get end() {
    const last = this.segments.at(-1);
    return last === undefined ? null : last.start + last.duration;
  }

  /** @param {Segment[]} listed The segments of a newer playlist of the same epoch. */
  update(listed) {
    if (listed.length === 0) return;
    let start = this.#startOf(listed);
    const older = this.memory > 0 ? this.#before(listed[0].sequence) : [];
    this.segments = older.concat(listed.map((segment) => {
      const placed = { ...segment, start };
      start += segment.duration;
      return placed;
    }));
  }

  /** @param {Segment[]} earlier Segments from the beginning on. Those before the first known one are put before it. */
  prepend(earlier) {
    const first = this.segments.at(0);
    if (first === undefined) return;
    const older = earlier.filter((segment) => segment.sequence < first.sequence);
    if (older.at(-1)?.sequence !== first.sequence - 1) return;
    let { start } = first;
    const placed = older.reverse().map((segment) => {
      start -= segment.duration;
      return { ...segment, start };
    });
    this.segments = placed.reverse().concat(this.segments);
  }

  /** @param {number} sequence @returns {PlacedSegment[]} Kept segments before that number, without a hole. */
  #before(sequence) {
    const known = this.segments.findIndex((segment) => segment.sequence === sequence);
    const last = this.segments.at(-1);
    const older = known >= 0 ? this.segments.slice(0, known) : last?.sequence === sequence - 1 ? this.segments : [];
    const oldest = (this.end ?? 0) - this.memory;
    const first = older.findIndex((segment) => segment.start >= oldest);
    return first < 0 ? [] : older.slice(first);
  }

  /**
   * Sets the media time at which a segment begins. It shifts the axis, and works only once.
   * @param {number} sequence
   * @param {number} seconds
   */
  anchor(sequence, seconds) {
    const segment = this.segments.find((s) => s.sequence === sequence);
    if (this.isAnchored || segment === undefined) return;
    const shift = seconds - segment.start;
    for (const placed of this.segments) placed.start += shift;
    this.isAnchored = true;
  }

  /** @param {number} time @returns {PlacedSegment | null} The segment at that time, or the nearest one. */
  at(time) {
    let found = this.segments.at(0) ?? null;
    for (const segment of this.segments) if (segment.start <= time + 1e-3) found = segment;
    return found;
  }

  /** @param {number} sequence @returns {PlacedSegment | null} */
  numbered(sequence) {
    const first = this.segments.at(0);
    return first === undefined ? null : this.segments[sequence - first.sequence] ?? null;
  }

  /** @param {number} time @returns {number | null} Wall clock at that time, in milliseconds since 1970. */
  dateAt(time) {
    const segment = this.at(time);
    return segment === null || segment.date === null ? null : segment.date + (time - segment.start) * 1000;
  }

  /** @param {Segment[]} listed @returns {number} Start of the first of them. */
  #startOf(listed) {
    const first = listed[0];
    const known = this.numbered(first.sequence);
    if (known !== null) return known.start;
    const last = this.segments.at(-1);
    if (last === undefined) return 0;
    const end = last.start + last.duration;
    // After a sleep longer than the window, some segments were never listed. Their length follows from the dates.
    if (first.date === null || last.date === null) return end;
    return Math.max(end, last.start + (first.date - last.date) / 1000);
  }
}
