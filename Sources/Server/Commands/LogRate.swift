internal import Logging
internal import Synchronization

/// Keeps the log short whatever peers do: of lines with one cause and one subject the first few are written, then no more
/// until a while has passed, and the next one tells how many were left out. So it is for one cause and all subjects
/// together, where the next one of any subject tells. Lines for debugging, and those that tell that the server cannot go
/// on, are not counted.
final class LogRate: Sendable {
  /// Lines in each such span of nanoseconds: of one cause and subject, and of one cause.
  static let burst = 10
  static let causeBurst = 200
  static let span: Int64 = 10_000_000_000
  /// Pairs of cause and subject that are remembered.
  private static let capacity = 2048
  /// Characters of a line that was left out, by which it is told.
  private static let textLength = 48

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

  /// Lines of one cause that were left out, beside those that a subject's next line tells of.
  struct Silence: Sendable, Hashable {
    var count: Int
    /// How the first of them began.
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

    /// What was left out of those that are forgotten is told of their cause.
    mutating func forgetLines(now: Int64) {
      let all = lines
      lines = lines.filter { now &- $0.value.start < LogRate.span }
      if lines.count >= LogRate.capacity { lines = [:] }
      for (line, count) in all where count.leftOut > 0 && lines[line] == nil {
        silence(line.cause, "… of \(line.subject)", count: count.leftOut)
      }
    }
  }

  private let state = Mutex(State())

  /// Nil where the line is not to be written, else how many like it, or of its cause, were left out before it.
  ///
  /// - Parameter now: nanoseconds of any clock that goes on.
  func leftOut(before event: LogEvent, _ metadata: Logger.Metadata, now: Int64) -> Int? {
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

  /// What was left out of causes that have had no line since and could have had one. To be told now, with whatever is written.
  func overdue(now: Int64) -> [Silence] {
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

  /// The first words, without what counts up in them.
  private static func text(_ message: String) -> Int {
    var hasher = Hasher()
    for byte in message.utf8.prefix(48) where !(0x30...0x39).contains(byte) { hasher.combine(byte) }
    return hasher.finalize()
  }
}
