internal import Glibc

/// How long, and how many, recordings are kept.
package struct RetentionSettings: Sendable {
  /// What happens before the disk reaches `--keep-free`. Recordings are removed only if the owner has configured that.
  package enum WhenFull: String, Sendable, Hashable, CaseIterable {
    /// Recording stops.
    case stop
    /// The oldest recordings are removed.
    case evict
  }

  /// Nanoseconds since the end of a recording; nil for no limit of age.
  package var maximumAge: Int64?
  /// Bytes of all recordings together; nil for no limit.
  package var maximumBytes: Int64?
  /// Bytes of one stream's recordings; nil for no limit.
  package var maximumBytesPerStream: Int64?
  package var whenFull = WhenFull.stop
  /// Nanoseconds for which a deletion can be undone.
  package var undoTime: Int64 = 3_600_000_000_000
  /// Bytes that may still be written to the disk; nil reads them from the file system of the recordings folder.
  package var freeBytes: (@Sendable () -> Int64?)?
  /// Waits for this many microseconds; tests need not.
  var pause: @Sendable (UInt32) -> Void = { usleep($0) }

  package init(
    maximumAge: Int64? = nil, maximumBytes: Int64? = nil, maximumBytesPerStream: Int64? = nil,
    whenFull: WhenFull = WhenFull.stop, undoTime: Int64 = 3_600_000_000_000, freeBytes: (@Sendable () -> Int64?)? = nil,
    pause: @escaping @Sendable (UInt32) -> Void = { usleep($0) }
  ) {
    (self.maximumAge, self.maximumBytes, self.maximumBytesPerStream, self.whenFull, self.undoTime) = (
      maximumAge, maximumBytes, maximumBytesPerStream, whenFull, undoTime
    )
    (self.freeBytes, self.pause) = (freeBytes, pause)
  }
}
