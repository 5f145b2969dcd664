internal import Basics

/// The threads of a server for work that may wait. There are three pools: disks, databases, and work beside the media. Programs
/// of hooks have the fourth (`Hooks`). Each lane can be blocked without the others: by its disk, its database or its worker.
struct ServerThreads {
  /// Opens recordings and reads their headers.
  let reading: WorkLane
  /// Writes the time-shift buffers.
  let rewinding: WorkLane
  /// Writes segments to a folder; nil without one.
  let segments: WorkLane?
  /// Nil where nothing is recorded.
  let recordings: RecordingLanes?
  /// Writes the log of events.
  let events: WorkLane
  /// Writes the state of streams for the next process.
  let streamState: WorkLane
  /// Wait for thumbnails: of live streams, and of recordings, so that a gallery of recordings does not delay live streams.
  let liveThumbnails: WorkLane
  let recordingThumbnails: WorkLane
  /// Makes reports and lists. It waits for no disk.
  let reports: WorkLane

  init(records: Bool, writesSegments: Bool) {
    let disks = WorkPool(
      threads: 3 + (writesSegments ? 1 : 0) + (records ? RecordingLanes.diskThreads : 0))
    reading = disks.lane("weir-reading", limit: 2)
    rewinding = disks.lane("weir-rewinding")
    segments = writesSegments ? disks.lane("weir-segments") : nil
    let databases = WorkPool(threads: 2 + (records ? RecordingLanes.databaseThreads : 0))
    events = databases.lane("weir-events")
    streamState = databases.lane("weir-streams")
    recordings = records ? RecordingLanes(disk: disks, databases: databases) : nil
    let beside = WorkPool(threads: 3)
    liveThumbnails = beside.lane("weir-live-jpeg")
    recordingThumbnails = beside.lane("weir-rec-jpeg")
    reports = beside.lane("weir-reports")
  }
}
