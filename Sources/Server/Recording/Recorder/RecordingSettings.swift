internal import Basics
internal import FMP4
internal import Ingest
internal import Logging
internal import NIOCore

/// What the recorders of a server have in common.
struct RecordingSettings: Sendable {
  /// The recordings folder.
  var folder: String
  /// Recording stops while the disk has fewer free bytes than this.
  var keepFree: Int64
  var policy = RecordingPolicy()
  var clock: SteadyClock
  var logger: Logger
  var calls = DiskCalls.system
  /// Hears what is written where, for replay while it is written.
  var archive: RecordingArchive?
  var disclosure = RecordingVisibility.whileWritten
  var budget = RecordingBudget(limit: 64 << 20)
  var counters = RecordingCounters()
  var files = RecordingFileRate()
  /// Hears of everything that happens to recordings.
  var announce: @Sendable (RecordingEvent) -> Void = { _ in }
  /// Hears that a recording is as long or as large as it may be, while the epoch of its stream goes on.
  var endedEarly: @Sendable (StreamName, _ epoch: String) -> Void = { _, _ in }
  /// Makes a movie of a file whose finishing takes a copy, sometime; the file must have been let go.
  var finishLater: @Sendable (UnfinishedRecording) -> Void = { _ in }
  /// Makes a movie of a file that the disk did not let be finished, when it does; the file must have been let go.
  var finishAgain: @Sendable (UnfinishedRecording) -> Void = { _ in }

  /// A recording that could not go on is tried again after so many nanoseconds, with the next key frame.
  static let retryInterval: Int64 = 2_000_000_000

  /// So many bytes more than `keepFree` must be free before recording goes on: files of a moment each are of no use.
  private static let resumeMargin: Int64 = 16 << 20

  /// Throws when the disk is fuller than `keepFree` allows; `isResuming` after that happened.
  func checkFreeSpace(_ folder: RecordingFolder, isResuming: Bool = false) throws(RecordingError) {
    guard let free = folder.freeBytes else { return }
    let disk = "the disk of \(LogText.escaped(self.folder)) has \(free / 1_000_000) MB free"
    let limit = "--keep-free (\(keepFree / 1_000_000) MB)"
    let enough = keepFree.saturatingAdd(Self.resumeMargin)
    if free < keepFree {
      throw RecordingError("\(disk), below \(limit); free space or lower --keep-free", code: nil)
    }
    if isResuming, free < enough {
      throw RecordingError(
        "\(disk); recording goes on at \(Self.megabytesUp(enough)) MB, which is \(limit) and"
          + " \(Self.megabytesUp(Self.resumeMargin)) MB to write to", code: nil)
    }
  }
}

extension RecordingSettings {
  private static func megabytesUp(_ bytes: Int64) -> Int64 { bytes / 1_000_000 + (bytes % 1_000_000 > 0 ? 1 : 0) }
}

/// A recording whose fragments are whole and whose movie is still to be made.
struct UnfinishedRecording: Sendable {
  var folder: RecordingFolder
  var name: RecordingName
  var stream: StreamName
  /// What its recorder knew of it; nil when an earlier run left it, or the file alone can tell what is left.
  var facts: RecordingFacts?
  /// Why it ended before it was to, for a file that could not be told.
  var failure: String?
  /// Where its segments lie, as the finished file is to keep it (`RecordingIndex.stored`).
  var index: ByteBuffer?
  /// A head was put in front and not known to be durable, or not all of it: it may have its final name already.
  var hasHead = false
  /// Hears that it is a movie, durably.
  var whenStored: @Sendable () -> Void = {}
}

extension Int64 {
  fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
