/// How long recordings are kept, and how many.
struct RetentionSettings: Sendable {
  /// What happens before the disk is as full as `--keep-free` allows. Nothing that was recorded goes unless its owner
  /// has said so.
  enum WhenFull: String, Sendable, Hashable, CaseIterable {
    /// Recording stops.
    case stop
    /// The oldest recordings go.
    case evict
  }

  /// Nanoseconds since a recording ended; nil keeps it however old it is.
  var maximumAge: Int64?
  /// Bytes of all recordings together; nil for no limit.
  var maximumBytes: Int64?
  /// Bytes of one stream's recordings; nil for no limit.
  var maximumBytesPerStream: Int64?
  var whenFull = WhenFull.stop
  /// How long a deletion can be taken back, in nanoseconds.
  var undoTime: Int64 = 3_600_000_000_000
  /// Bytes that may still be written to the disk; nil asks the file system of the recordings folder.
  var freeBytes: (@Sendable () -> Int64?)?
}
