internal import Glibc
internal import Synchronization

/// The file for log lines. Writing never waits, because event loops log: if the reader of a full pipe is slow, lines are dropped
/// and counted. The count is logged as soon as lines fit again.
final class LogOutput: Sendable {
  /// `PIPE_BUF` of Linux (pipe(7)): a pipe that polls writable takes this many bytes at once, without waiting.
  static let maximumLineBytes = 4096

  private let descriptor: Int32
  private let dropped = Mutex(0)

  init(descriptor: Int32) {
    self.descriptor = descriptor
  }

  /// Whether the output is a terminal.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  static let standardError = LogOutput(descriptor: STDERR_FILENO)

  /// Writes one line that ends in a line feed; what exceeds `maximumLineBytes` is cut. `note` makes the line that reports how
  /// many lines were dropped before it.
  func write(_ line: String, note: (_ sentence: String) -> String = { "weir: \($0)\n" }) {
    dropped.withLock { dropped in
      guard isWritable else {
        dropped += 1
        return
      }
      if dropped > 0 {
        put(note("\(dropped) log lines were dropped, because the reader of the log was too slow"))
        dropped = 0
        guard isWritable else {
          dropped += 1
          return
        }
      }
      put(line)
    }
  }

  private var isWritable: Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
    return poll(&request, 1, 0) == 1 && request.revents & Int16(POLLOUT) != 0
  }

  private func put(_ line: String) {
    var bytes = Array(line.utf8)
    if bytes.count > Self.maximumLineBytes {
      bytes = bytes.prefix(Self.maximumLineBytes - 1) + [UInt8(ascii: "\n")]
    }
    _ = Glibc.write(descriptor, bytes, bytes.count)
  }
}
