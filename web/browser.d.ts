// Browser interfaces that Debian's TypeScript does not know yet.

interface Array<T> {
  findLast(predicate: (value: T, index: number) => unknown): T | undefined;
}

interface HTMLVideoElement {
  /** WebKit: the wall clock at media time 0. */
  getStartDate?(): Date;
  /** The only full screen on iPhones. */
  webkitEnterFullscreen?(): void;
}

interface WakeLockSentinel {
  release(): Promise<void>;
}

interface Navigator {
  readonly wakeLock: { request(type: "screen"): Promise<WakeLockSentinel> };
}

/** WebKit's managed media source, the only one on iPhones. */
declare var ManagedMediaSource: typeof MediaSource | undefined;
