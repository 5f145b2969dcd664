internal import FMP4
internal import Logging
internal import Synchronization

/// Limits the rate of log lines, whatever peers do. Of lines with the same cause and subject, the first few in a span are
/// written. The next line after the span reports how many were left out. The same holds for one cause and all subjects together.
/// Debug lines and critical lines are not counted.
final class LogRate: Sendable {
  /// Lines in each span of nanoseconds: of one cause and subject, and of one cause.
  static let burst = 10
  static let causeBurst = 200
  static let span: Int64 = 10_000_000_000
  /// Limit of remembered pairs of cause and subject.
  private static let capacity = 2048
  /// Characters quoted from a line that was left out.
  private static let textLength = 48

  /// The place in the source code that logs a line.
  private struct Cause: Hashable {
    let file: String
    let line: UInt
  }

  private struct Line: Hashable {
    let cause: Cause
    /// The stream, or the address without its port.
    let subject: String
    /// Hash of the text without digits.
    let text: Int
  }

  private struct Count {
    var start: WallTime
    var written = 0
    var leftOut = 0

    /// Counts a line. False if the limit of the span is reached.
    mutating func takes(_ limit: Int, _ now: WallTime) -> Bool {
      if now &- start >= LogRate.span { (start, written) = (now, 0) }
      guard written < limit else { return false }
      written += 1
      return true
    }
  }

  /// Lines of one cause that were left out, beyond those reported by the next line of a subject.
  struct Silence: Sendable, Hashable {
    var count: Int
    /// The beginning of the first of them.
    var text: String
  }

  private struct State {
    var lines: [Line: Count] = [:]
    var causes: [Cause: Count] = [:]
    var silences: [Cause: Silence] = [:]

    mutating func silence(_ cause: Cause, _ text: String, count: Int = 1) {
      guard silences[cause] != nil else { return silences[cause] = Silence(count: count, text: text) }
      silences[cause]?.count += count
    }

    /// Forgets subjects. Lines left out of them are counted for their cause.
    mutating func forgetLines(now: WallTime) {
      let all = lines
      lines = lines.filter { now &- $0.value.start < LogRate.span }
      if lines.count >= LogRate.capacity { lines = [:] }
      for (line, count) in all where count.leftOut > 0 && lines[line] == nil {
        silence(line.cause, "… of \(line.subject)", count: count.leftOut)
      }
    }
  }

  private let state = Mutex(State())

  /// Nil if the line is not to be written. Otherwise the number of similar lines, or lines of the same cause, that were left out
  /// before it.
  func leftOut(before event: LogEvent, _ metadata: Logger.Metadata, now: WallTime) -> Int? {
    guard event.level > .debug, event.level < .critical else { return 0 }
    let cause = Cause(file: event.file, line: event.line)
    let line = Line(cause: cause, subject: Self.subject(metadata), text: Self.text(event.message.description))
    return state.withLock { state in
      if state.lines.count >= Self.capacity, state.lines[line] == nil {
        state.forgetLines(now: now)
      }
      guard state.lines[line, default: Count(start: now)].takes(Self.burst, now) else {
        state.lines[line]?.leftOut += 1
        return nil
      }
      guard state.causes[cause, default: Count(start: now)].takes(Self.causeBurst, now) else {
        state.silence(cause, String(event.message.description.prefix(Self.textLength)))
        return nil
      }
      defer { state.lines[line]?.leftOut = 0 }
      return (state.lines[line]?.leftOut ?? 0) + (state.silences.removeValue(forKey: cause)?.count ?? 0)
    }
  }

  /// Counts of causes that have logged no line since their span ended. They are to be written now.
  func overdue(now: WallTime) -> [Silence] {
    state.withLock { state in
      guard !state.silences.isEmpty else { return [] }
      let over = state.silences.filter { silence in
        state.causes[silence.key].map { now &- $0.start >= Self.span } ?? true
      }
      for cause in over.keys { state.silences[cause] = nil }
      return over.values.sorted { $0.text < $1.text }
    }
  }

  private static func subject(_ metadata: Logger.Metadata) -> String {
    guard let remote = metadata["remote"]?.description else { return metadata["stream"]?.description ?? "" }
    return remote.lastIndex(of: ":").map { String(remote[..<$0]) } ?? remote
  }

  /// Hash of the first bytes, without digits.
  private static func text(_ message: String) -> Int {
    var hasher = Hasher()
    for byte in message.utf8.prefix(48) where !(0x30...0x39).contains(byte) { hasher.combine(byte) }
    return hasher.finalize()
  }
}
