internal import Base
internal import Recording

/// The threads of a server for work that may wait. There are three pools: disks, databases, and work beside the media. Programs
/// of hooks have the fourth (`Hooks`). Each queue can be blocked without the others: by its disk, its database or its worker.
struct ServerThreads {
  /// Opens recordings and reads their headers.
  let reading: WorkQueue
  /// Writes the time-shift buffers.
  let rewinding: WorkQueue
  /// Writes segments to a folder; nil without one.
  let segments: WorkQueue?
  /// Nil where nothing is recorded.
  let recordings: RecordingQueues?
  /// Writes the log of events.
  let events: WorkQueue
  /// Writes the state of streams for the next process.
  let streamState: WorkQueue
  /// Wait for thumbnails: of live streams, and of recordings, so that a gallery of recordings does not delay live streams.
  let liveThumbnails: WorkQueue
  let recordingThumbnails: WorkQueue
  /// Makes reports and lists. It waits for no disk.
  let reports: WorkQueue

  init(records: Bool, writesSegments: Bool) {
    let disks = WorkPool(
      threads: 3 + (writesSegments ? 1 : 0) + (records ? RecordingQueues.diskThreads : 0))
    reading = disks.queue("weir-reading", limit: 2)
    rewinding = disks.queue("weir-rewinding")
    segments = writesSegments ? disks.queue("weir-segments") : nil
    let databases = WorkPool(threads: 2 + (records ? RecordingQueues.databaseThreads : 0))
    events = databases.queue("weir-events")
    streamState = databases.queue("weir-streams")
    recordings = records ? RecordingQueues(disk: disks, databases: databases) : nil
    let beside = WorkPool(threads: 3)
    liveThumbnails = beside.queue("weir-live-jpeg")
    recordingThumbnails = beside.queue("weir-rec-jpeg")
    reports = beside.queue("weir-reports")
  }
}
