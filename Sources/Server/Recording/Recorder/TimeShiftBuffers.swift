package import Base
package import Logging
package import Publishing

/// Makes the time-shift buffers of a server: recorders whose files have no name. They share one thread and the memory for media
/// that waits for the disk.
package final class TimeShiftBuffers: Sendable {
  private let settings: RecordingSettings
  let threads: any WorkThreads

  /// `folder` holds the files; `keepFree` bytes stay free there. `budget` limits what waits for the disk.
  package init(
    folder: String, keepFree: Int64, archive: RecordingArchive,
    budget: RecordingBudget = RecordingBudget(limit: 64 << 20), threads: any WorkThreads = WorkQueue("weir-rewinding"),
    logger: Logger
  ) {
    self.threads = threads
    settings = RecordingSettings(
      folder: folder, keepFree: keepFree, clock: .system(), logger: logger, archive: archive, budget: budget)
  }

  /// A time-shift buffer for an epoch of a stream.
  package func make(_ stream: StreamName, epoch: String) -> Recorder {
    Recorder(.timeShiftBuffer, stream: stream, epoch: epoch, settings: settings, threads: threads)
  }
}
