internal import Glibc

/// How long, and how many, recordings are kept.
struct RetentionSettings: Sendable {
  /// What happens before the disk reaches `--keep-free`. Recordings are removed only if the owner has configured that.
  enum WhenFull: String, Sendable, Hashable, CaseIterable {
    /// Recording stops.
    case stop
    /// The oldest recordings are removed.
    case evict
  }

  /// Nanoseconds since the end of a recording; nil for no limit of age.
  var maximumAge: Int64?
  /// Bytes of all recordings together; nil for no limit.
  var maximumBytes: Int64?
  /// Bytes of one stream's recordings; nil for no limit.
  var maximumBytesPerStream: Int64?
  var whenFull = WhenFull.stop
  /// Nanoseconds for which a deletion can be undone.
  var undoTime: Int64 = 3_600_000_000_000
  /// Bytes that may still be written to the disk; nil reads them from the file system of the recordings folder.
  var freeBytes: (@Sendable () -> Int64?)?
  /// Waits for this many microseconds; tests need not.
  var pause: @Sendable (UInt32) -> Void = { usleep($0) }
}
