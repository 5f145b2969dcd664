package import Logging
internal import Synchronization

/// Keeps what is logged: level and text of each line.
package final class LoggedLines: Sendable {
  package init() {}

  private let lines = Mutex<[String]>([])

  package var all: [String] { lines.withLock { $0 } }
  package var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

  private struct Handler: LogHandler {
    let lines: LoggedLines
    var metadata = Logger.Metadata()
    var logLevel = Logger.Level.info
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }
    func log(event: LogEvent) {
      lines.lines.withLock { $0.append("\(event.level) \(event.message)") }
    }
  }
}
