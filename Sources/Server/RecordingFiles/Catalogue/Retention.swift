internal import FMP4
internal import Publishing

/// Chooses the recordings to remove: a pure function of the rules and the present recordings.
struct Retention: Sendable, Hashable {
  /// Nanoseconds since the end of a recording; nil for no limit of age.
  var maximumAge: Int64?
  /// Bytes of all recordings together.
  var maximumBytes: Int64?
  /// Bytes of one stream's recordings.
  var maximumBytesPerStream: Int64?
  /// Bytes that stay free on the disk; recording stops below this.
  var keepFree: Int64 = 0
  var whenFull = RetentionSettings.WhenFull.evict

  /// Why a recording is removed.
  enum Reason: String, Sendable, Hashable {
    case age = "older than --retain-age"
    case streamSize = "its stream has more than --retain-stream-size"
    case totalSize = "the recordings have more than --retain-size"
    case freeSpace = "the disk is nearly as full as --keep-free allows"
  }

  /// Space used on the disk.
  struct Usage: Sendable, Hashable {
    /// Bytes that are not deleted, including running and protected recordings.
    var byStream: [StreamName: Int64] = [:]
    /// Bytes that may still be written; nil if not known.
    var free: Int64?
    /// Bytes to keep free above `keepFree`, so that writing never reaches it: what is written in a second or two.
    var headroom: Int64 = 0

    var total: Int64 { byStream.values.reduce(0, &+) }
  }

  struct Victim: Sendable, Hashable {
    var entry: RecordingEntry
    var reason: Reason
  }

  /// Bytes that must be freed; 0 if there are enough.
  func shortage(_ usage: Usage) -> Int64 {
    usage.free.map { max(0, keepFree &+ usage.headroom &- $0) } ?? 0
  }

  /// `candidates` are neither protected nor running, the oldest first. `deleted` can still be restored and is removed first when
  /// space is short.
  func victims(
    among candidates: [RecordingEntry], deleted: [RecordingEntry] = [], usage: Usage, now: WallTime
  ) -> [Victim] {
    var victims: [Victim] = []
    var byStream = usage.byStream
    var total = usage.total
    var shortage = shortage(usage)
    for entry in deleted where shortage > 0 {
      victims.append(Victim(entry: entry, reason: .freeSpace))
      shortage -= Int64(entry.bytes)
    }
    for entry in candidates {
      let ofStream = byStream[entry.stream] ?? 0
      let reason: Reason? =
        if let maximumAge, entry.endedAt < now &- maximumAge {
          .age
        } else if let maximumBytesPerStream, ofStream > maximumBytesPerStream {
          .streamSize
        } else if let maximumBytes, total > maximumBytes {
          .totalSize
        } else if shortage > 0, whenFull == .evict {
          .freeSpace
        } else {
          nil
        }
      guard let reason else { continue }
      victims.append(Victim(entry: entry, reason: reason))
      byStream[entry.stream] = ofStream - Int64(entry.bytes)
      total -= Int64(entry.bytes)
      shortage -= Int64(entry.bytes)
    }
    return victims
  }
}

extension RecordingEntry {
  var endedAt: WallTime { startedAt &+ Int64(min(max(seconds, 0), 1e9) * 1e9) }
}
