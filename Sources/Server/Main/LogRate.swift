internal import Logging
internal import Synchronization

/// Keeps the log short whatever peers do: of lines with one cause and one subject the first few are written, then no more
/// until a while has passed, and the next one tells how many were left out. So it is for one cause and all subjects
/// together. Lines for debugging, and those that tell that the server cannot go on, are not counted.
final class LogRate: Sendable {
  /// Lines in each such span of nanoseconds: of one cause and subject, and of one cause.
  static let burst = 10
  static let causeBurst = 200
  static let span: Int64 = 10_000_000_000
  /// Pairs of cause and subject that are remembered.
  private static let capacity = 2048

  /// Where a line comes from in the sources.
  private struct Cause: Hashable {
    let file: String
    let line: UInt
  }

  private struct Line: Hashable {
    let cause: Cause
    /// The stream, or the address without its port.
    let subject: String
    /// What it says, without numbers.
    let text: Int
  }

  private struct Count {
    var start: Int64
    var written = 0
    var leftOut = 0

    /// Whether another line fits.
    mutating func takes(_ limit: Int, _ now: Int64) -> Bool {
      if now &- start >= LogRate.span { (start, written) = (now, 0) }
      guard written < limit else { return false }
      written += 1
      return true
    }
  }

  private struct State {
    var lines: [Line: Count] = [:]
    var causes: [Cause: Count] = [:]
  }

  private let state = Mutex(State())

  /// Nil where the line is not to be written, else how many like it were left out before it.
  ///
  /// - Parameter now: nanoseconds of any clock that goes on.
  func leftOut(before event: LogEvent, _ metadata: Logger.Metadata, now: Int64) -> Int? {
    guard event.level > .debug, event.level < .critical else { return 0 }
    let cause = Cause(file: event.file, line: event.line)
    let line = Line(cause: cause, subject: Self.subject(metadata), text: Self.text(event.message.description))
    return state.withLock { state in
      if state.lines.count >= Self.capacity, state.lines[line] == nil {
        state.lines = state.lines.filter { now &- $0.value.start < Self.span }
        if state.lines.count >= Self.capacity { state.lines = [:] }
      }
      guard state.lines[line, default: Count(start: now)].takes(Self.burst, now),
        state.causes[cause, default: Count(start: now)].takes(Self.causeBurst, now)
      else {
        state.lines[line]?.leftOut += 1
        return nil
      }
      defer { state.lines[line]?.leftOut = 0 }
      return state.lines[line]?.leftOut ?? 0
    }
  }

  private static func subject(_ metadata: Logger.Metadata) -> String {
    guard let remote = metadata["remote"]?.description else { return metadata["stream"]?.description ?? "" }
    return remote.lastIndex(of: ":").map { String(remote[..<$0]) } ?? remote
  }

  /// The first words, without what counts up in them.
  private static func text(_ message: String) -> Int {
    var hasher = Hasher()
    for byte in message.utf8.prefix(48) where !(0x30...0x39).contains(byte) { hasher.combine(byte) }
    return hasher.finalize()
  }
}
