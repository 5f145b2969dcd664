// What browsers have and Debian's TypeScript does not know yet.

interface Array<T> {
  findLast(predicate: (value: T, index: number) => unknown): T | undefined;
}

interface HTMLVideoElement {
  /** WebKit: the wall-clock time of the media time 0. */
  getStartDate?(): Date;
  /** iPhones have no other full screen. */
  webkitEnterFullscreen?(): void;
}

/** WebKit's media source, the only one on iPhones. */
declare var ManagedMediaSource: typeof MediaSource | undefined;
