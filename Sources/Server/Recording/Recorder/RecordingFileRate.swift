internal import Ingest
internal import Synchronization

/// How many files each stream has begun within an hour: a publisher that changes its format all the time, or comes again
/// and again, does not fill the disk with them.
final class RecordingFileRate: Sendable {
  /// Nanoseconds.
  private static let hour: Int64 = 3_600_000_000_000
  /// Streams that are remembered.
  private static let streams = 4096

  /// When each stream began its newest files, oldest first, in monotonic nanoseconds.
  private let begun = Mutex<[StreamName: [Int64]]>([:])

  /// Streams that are remembered now.
  var remembered: Int { begun.withLock { $0.count } }

  /// Forgets what is older than an hour, and where that is too little those that have begun fewest files, the oldest of them.
  private static func forget(_ begun: inout [StreamName: [Int64]], now: Int64) {
    begun = begun.filter { $0.value.last.map { now &- $0 < hour } ?? false }
    guard begun.count >= streams else { return }
    let least = begun.sorted { ($0.value.count, $0.value.last ?? 0) < ($1.value.count, $1.value.last ?? 0) }
    for entry in least.prefix(streams / 8) { begun[entry.key] = nil }
  }

  /// The stream begins a file. Throws where it has begun as many as it may.
  func take(_ stream: StreamName, limit: Int, now: Int64) throws(RecordingError) {
    let isFree = begun.withLock { begun in
      if begun.count >= Self.streams, begun[stream] == nil {
        Self.forget(&begun, now: now)
      }
      var times = begun[stream, default: []]
      times.removeAll { now &- $0 >= Self.hour }
      defer { begun[stream] = times }
      guard times.count < limit else { return false }
      times.append(now)
      return true
    }
    guard isFree else {
      throw RecordingError(
        "the stream has begun \(limit) files within an hour, as many as it may; let its encoder keep one format, or raise"
          + " --record-max-files")
    }
  }
}
