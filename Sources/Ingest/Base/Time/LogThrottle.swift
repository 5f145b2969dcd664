/// Limits log lines that a publisher can cause with each of its key frames: the first few are logged, then none for a
/// while. A value type.
package struct LogThrottle: Sendable {
  /// Lines per span, and span in nanoseconds.
  static let burst = 5
  static let span: Int64 = 10_000_000_000

  private var start: MonotonicTime?
  private var told = 0
  private var untold = 0

  package init() {}

  /// Nil if this line is not logged. Otherwise a note about suppressed lines, possibly empty.
  package mutating func tells(now: MonotonicTime) -> String? {
    if start.map({ now &- $0 >= Self.span }) ?? true { (start, told) = (now, 0) }
    guard told < Self.burst else {
      untold &+= 1
      return nil
    }
    told += 1
    defer { untold = 0 }
    return untold > 0 ? " (\(untold) earlier changes were not logged)" : ""
  }
}
