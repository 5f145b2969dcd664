internal import Base
internal import Logging
internal import NIOCore
internal import RecordingFiles

/// What the recorders of a server have in common.
struct RecordingSettings: Sendable {
  /// The recordings folder.
  var folder: String
  /// Recording stops while the disk has fewer free bytes than this.
  var keepFree: Int64
  var policy = RecordingPolicy()
  /// The name that a client gave to the recording.
  var title: RecordingTitle?
  var tracks = TrackChoice.all
  var clock: SteadyClock
  var logger: Logger
  var calls = DiskCalls.system
  /// Learns what is written where, so that a recording can be replayed while it is written.
  var archive: RecordingArchive?
  var visibility = RecordingVisibility.whileWritten
  var budget = RecordingBudget(limit: 64 << 20)
  var counters = RecordingCounters()
  var files = RecordingFileRate()
  /// Takes what the recorders of all streams give.
  var give: @Sendable (RecordingOutput) -> Void = { _ in }

  /// Nanoseconds after a failure until recording is tried again, with the next key frame.
  static let retryInterval: Int64 = 2_000_000_000

  /// Bytes beyond `keepFree` that must be free before recording resumes. Without them, files of a moment each would result.
  private static let resumeMargin: Int64 = 16 << 20

  /// Throws if fewer bytes are free than `keepFree`. `isResuming`: recording stopped before for lack of space.
  func checkFreeSpace(_ folder: RecordingFolder, isResuming: Bool = false) throws(RecordingError) {
    guard let free = calls.freeBytes(folder) else { return }
    let disk = "the disk of \(LogText.escaped(self.folder)) has \(free / 1_000_000) MB free"
    let limit = "--keep-free (\(keepFree / 1_000_000) MB)"
    let enough = keepFree.saturatingAdd(Self.resumeMargin)
    if free < keepFree {
      throw RecordingError("\(disk), below \(limit); free space or lower --keep-free", code: nil)
    }
    if isResuming, free < enough {
      throw RecordingError(
        "\(disk); recording resumes at \(Self.megabytesUp(enough)) MB, which is \(limit) and"
          + " \(Self.megabytesUp(Self.resumeMargin)) MB for writing", code: nil)
    }
  }
}

extension RecordingSettings {
  private static func megabytesUp(_ bytes: Int64) -> Int64 { bytes / 1_000_000 + (bytes % 1_000_000 > 0 ? 1 : 0) }
}

extension Int64 {
  fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
