/// Chooses which bytes of a growing file the system may drop from its page cache. When a range is inserted at the start of a
/// file, the system drops all of its cached pages. That takes 50 ms a gigabyte while the recording is not stored yet and the
/// server may be waiting to exit. Durable bytes are therefore dropped as the file grows, except for the newest part, which most
/// rewinding viewers read. Reading dropped bytes brings them back into the cache.
struct PageCacheTrimmer: Sendable {
  /// Bytes that stay in memory: half an hour at 4 Mbit/s.
  static let kept: UInt64 = 1 << 30
  /// Bytes dropped in one step, which takes three milliseconds.
  static let step: UInt64 = 64 << 20

  /// End of what was dropped.
  private var start: UInt64 = 0

  /// The range to drop now that this many bytes are durable; nil while it is less than a step. Each byte is returned once.
  mutating func advance(durable: UInt64) -> Range<UInt64>? {
    let end = (durable - min(durable, Self.kept)) / Self.step * Self.step
    guard end > start else { return nil }
    defer { start = end }
    return start..<end
  }
}
