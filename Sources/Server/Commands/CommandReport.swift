internal import Answers
internal import ArgumentParser
internal import Base
internal import Glibc
internal import NIOCore

/// The results of a command for its files: one line each, or a JSON array at the end. The exit status is 1 if one file is not
/// good.
struct CommandReport {
  struct Entry {
    var text: String
    var answer: any Encodable
    var isGood: Bool
  }

  private struct Failure: Encodable {
    let ok = false
    let error: String
  }

  private struct AnyAnswer: Encodable {
    let answer: any Encodable
    func encode(to encoder: any Encoder) throws { try answer.encode(to: encoder) }
  }

  private let json: Bool
  private var answers: [AnyAnswer] = []
  private var isGood = true

  init(json: Bool) {
    self.json = json
  }

  mutating func add(_ work: () throws -> Entry) {
    let entry: Entry
    do {
      entry = try work()
    } catch {
      entry = Entry(text: "error: \(error)", answer: Failure(error: "\(error)"), isGood: false)
    }
    isGood = isGood && entry.isGood
    if json { answers.append(AnyAnswer(answer: entry.answer)) } else { print(entry.text) }
  }

  func conclude() throws {
    if json { print(String(buffer: JSONText.encode(answers))) }
    if !isGood { throw ExitCode.failure }
  }
}

/// Shows the progress of a command on standard error: a bar on a terminal, otherwise a line every 5 seconds.
final class ProgressLine {
  private let label: String
  private let isShown: Bool
  private let isTerminal: Bool
  private var lastShown = MonotonicTime.now()
  private var hasBar = false

  init(label: String, isShown: Bool) {
    self.label = label
    self.isShown = isShown
    isTerminal = isatty(STDERR_FILENO) == 1
  }

  private static let width = 30

  /// `done` of `total` bytes.
  func update(_ done: UInt64, _ total: UInt64) {
    guard isShown, total > 0 else { return }
    let now = MonotonicTime.now()
    let milliseconds = (now &- lastShown) / 1_000_000
    guard milliseconds >= (isTerminal ? 100 : 5000) else { return }
    lastShown = now
    let percent = Int(min(100, done / max(1, total / 100)))
    guard isTerminal else { return write("\(label): \(percent) %\n") }
    let filled = Self.width * percent / 100
    let bar = String(repeating: "█", count: filled) + String(repeating: "░", count: Self.width - filled)
    write("\r\(label) \(bar) \(percent) %")
    hasBar = true
  }

  /// Removes the bar.
  func finish() {
    if hasBar { write("\r\u{1b}[K") }
    hasBar = false
  }

  private func write(_ text: String) {
    let bytes = Array(text.utf8)
    _ = Glibc.write(STDERR_FILENO, bytes, bytes.count)
  }
}
