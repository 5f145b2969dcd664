internal import Base
internal import Publishing
internal import RecordingFiles
internal import Synchronization

/// Counts the files that each stream begins within an hour. The limit protects the disk from a publisher that keeps changing its
/// format or reconnecting.
final class RecordingFileRate: Sendable {
  /// Nanoseconds.
  private static let hour: Int64 = 3_600_000_000_000
  /// Limit of the streams that are remembered.
  private static let streams = 4096

  /// When each stream began its newest files, oldest first.
  private let begun = Mutex<[StreamName: [MonotonicTime]]>([:])

  /// Number of streams remembered now.
  var remembered: Int { begun.withLock { $0.count } }

  /// Forgets streams without a file in the last hour. If that is too little, also those with the fewest files, the least recent
  /// first.
  private static func forget(_ begun: inout [StreamName: [MonotonicTime]], now: MonotonicTime) {
    begun = begun.filter { $0.value.last.map { now &- $0 < hour } ?? false }
    guard begun.count >= streams else { return }
    let least = begun.sorted { ($0.value.count, $0.value.last ?? .zero) < ($1.value.count, $1.value.last ?? .zero) }
    for entry in least.prefix(streams / 8) { begun[entry.key] = nil }
  }

  /// Counts a new file of the stream. Throws if its limit is reached.
  func take(_ stream: StreamName, limit: Int, now: MonotonicTime) throws(RecordingError) {
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
        "the stream has begun \(limit) files within an hour, its limit; make its encoder keep one format, or raise"
          + " --record-max-files")
    }
  }
}
