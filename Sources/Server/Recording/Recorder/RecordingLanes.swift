internal import Basics

/// The threads of recordings. A disk that does not respond blocks these alone.
struct RecordingLanes: Sendable {
  /// Write what is recorded.
  let writers: WorkLane
  /// Finishes the files of an earlier run and files that need a copy, one after another.
  let finisher: WorkLane
  /// Changes the catalogue: events, deletions and retention, one after another.
  let catalogue: WorkLane
  /// Read the catalogue.
  let lists: WorkLane

  /// Threads that it takes of each pool.
  static let (diskThreads, databaseThreads) = (7, 1)

  init(disk: WorkPool, databases: WorkPool, writers: Int = 4) {
    self.writers = disk.lane("weir-recording", limit: writers)
    finisher = disk.lane("weir-finishing")
    lists = disk.lane("weir-lists", limit: 2)
    catalogue = databases.lane("weir-catalogue")
  }

  /// Those of a library alone.
  init(writers: Int = 4) {
    self.init(
      disk: WorkPool(threads: Self.diskThreads), databases: WorkPool(threads: Self.databaseThreads), writers: writers)
  }
}
