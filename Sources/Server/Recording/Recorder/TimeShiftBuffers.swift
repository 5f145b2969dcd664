internal import Ingest
internal import Logging
internal import NIOPosix

/// Makes the time-shift buffers of a server. They share one thread and the memory for media that waits for the disk.
final class TimeShiftBuffers: Sendable {
  private let folder: String
  private let keepFree: Int64
  private let archive: RecordingArchive
  private let logger: Logger
  private let budget = RecordingBudget(limit: 64 << 20)
  let threads = NIOThreadPool(numberOfThreads: 1)

  /// `folder` holds the files; `keepFree` bytes stay free there.
  init(folder: String, keepFree: Int64, archive: RecordingArchive, logger: Logger) {
    self.folder = folder
    self.keepFree = keepFree
    self.archive = archive
    self.logger = logger
    threads.start()
  }

  deinit {
    threads.shutdownGracefully { _ in }
  }

  /// A time-shift buffer for an epoch of a stream.
  func make(_ stream: StreamName, epoch: String) -> TimeShiftBuffer {
    TimeShiftBuffer(
      stream: stream, epoch: epoch, folder: folder, keepFree: keepFree, archive: archive, budget: budget,
      threads: threads, logger: logger)
  }
}
