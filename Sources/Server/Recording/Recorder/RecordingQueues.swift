package import Base

/// The threads of recordings. A disk that does not respond blocks these alone.
package struct RecordingQueues: Sendable {
  /// Write what is recorded.
  let writers: WorkQueue
  /// Finishes the files of an earlier run and files that need a copy, one after another.
  let finisher: WorkQueue
  /// Changes the catalogue: events, deletions and retention, one after another.
  let catalogue: WorkQueue
  /// Read the catalogue.
  let lists: WorkQueue

  /// Threads that it takes of each pool.
  package static let (diskThreads, databaseThreads) = (7, 1)

  package init(disk: WorkPool, databases: WorkPool, writers: Int = 4) {
    self.writers = disk.queue("weir-recording", limit: writers)
    finisher = disk.queue("weir-finishing")
    lists = disk.queue("weir-lists", limit: 2)
    catalogue = databases.queue("weir-catalogue")
  }

  /// Those of a library alone.
  package init(writers: Int = 4) {
    self.init(
      disk: WorkPool(threads: Self.diskThreads), databases: WorkPool(threads: Self.databaseThreads), writers: writers)
  }
}
