/// Which bytes of a growing file the system need not keep in memory any more. When room is inserted in front of a file, all
/// that memory has of it is dropped: 50 ms a gigabyte, while the recording is not yet stored and the server perhaps waits to
/// end. What is durable is therefore dropped as the file grows, but for its newest part, which viewers mostly go back to.
/// Whoever reads what was dropped brings it back for those who come after.
struct PageCacheTrimmer: Sendable {
  /// Bytes that stay in memory: half an hour of 4 Mbit/s.
  static let kept: UInt64 = 1 << 30
  /// Bytes that are dropped at once, which takes three milliseconds.
  static let step: UInt64 = 64 << 20

  /// Up to where it was dropped.
  private var start: UInt64 = 0

  /// What may be dropped now that so many bytes are durable; nil while that is less than a step. Each byte is told once.
  mutating func advance(durable: UInt64) -> Range<UInt64>? {
    let end = (durable - min(durable, Self.kept)) / Self.step * Self.step
    guard end > start else { return nil }
    defer { start = end }
    return start..<end
  }
}
