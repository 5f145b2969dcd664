package import Base
package import FMP4
internal import Glibc
package import NIOCore
internal import NIOPosix
package import Publishing
internal import RecordingFiles
package import Storage
internal import Synchronization

/// Listing, opening and retention of recordings.
extension RecordingLibrary {
  /// All recordings kept, newest first, at most one page of the largest size.
  func list(on eventLoop: any EventLoop) -> EventLoopFuture<[RecordingEntry]> {
    var query = CatalogueQuery()
    query.limit = CatalogueQuery.maximumLimit
    return catalogue.list(query, on: eventLoop).map(\.entries)
  }

  /// The bytes of a finished recording, for `/recordings/{stream}/{file}`; nil if there is none of that name. `file` comes from a
  /// URL. Fails with `OpenRecordings.Full`.
  package func open(
    stream: StreamName, file: String, for client: NetworkAddress? = nil, on eventLoop: any EventLoop
  ) -> EventLoopFuture<OpenedRecording?> {
    guard let name = RecordingName(finished: file) else { return eventLoop.makeSucceededFuture(nil) }
    return threads.runIfActive(eventLoop: eventLoop) { try self.openNow(stream, name, for: client) }
  }

  /// The same on the calling thread, which waits for the disk.
  func openNow(
    _ stream: StreamName, _ name: RecordingName, for client: NetworkAddress? = nil
  ) throws(OpenRecordings.Full) -> OpenedRecording? {
    guard let folder = try? RecordingFolder.open(folder).folder(of: stream, ifAbsent: .fail),
      let (file, status) = try files.open(name.finished, in: folder, for: client)
    else { return nil }
    return OpenedRecording(
      range: FileRange(file: file, offset: 0, length: Int(status.st_size)),
      entityTag: "\"\(Self.identity(status))\"",
      title: RecordingMetadata.read(file.descriptor, size: UInt64(clamping: status.st_size))?.title)
  }

  /// Identifies the content of the file: inode, size and time of the last change.
  private static func identity(_ status: stat) -> String {
    let time = status.st_mtim.nanoseconds
    return [Int64(clamping: status.st_ino), Int64(status.st_size), time].map { String($0, radix: 36) }
      .joined(separator: "-")
  }

  /// Applies the retention rules and purges what was deleted long ago. To be called about
  /// once a second. Returns at once, and calls `done` afterwards. While a slow disk delays the work, further calls do nothing.
  package func retainSoon(now: WallTime, done: @escaping @Sendable () -> Void = {}) {
    guard !retaining.exchange(true, ordering: .relaxed) else { return }
    catalogue.thread.submit { pool in
      if case .active = pool { self.retain(now: now) }
      self.retained.store(MonotonicTime.now().nanoseconds, ordering: .relaxed)
      self.retaining.store(false, ordering: .releasing)
      done()
    }
  }

  /// Nanoseconds since the rules were applied last; nil while they are.
  package var timeSinceRetention: Int64? {
    isRetaining ? nil : MonotonicTime.now().nanoseconds &- retained.load(ordering: .relaxed)
  }

  /// Whether the rules are being applied.
  package var isRetaining: Bool { retaining.load(ordering: .acquiring) }

  /// How long the rules of retention need not be applied, as far as recordings themselves make it due; nil if none does.
  package func timeToRetention(from now: WallTime) -> Duration? {
    retentionDue.withLock { $0 }.map { .nanoseconds(max(0, $0 &- now)) }
  }

  /// The same, but waits until it is done.
  func retain(now: WallTime) async throws {
    try await catalogue.thread.runIfActive { self.retain(now: now) }
  }

  private func retain(now: WallTime) {
    if catalogue.isClosed { return }
    do {
      catalogue.catchUp()
      let due = try keeper.withLock { keeper in
        try keeper.look(now: now)
        return keeper.due
      }
      retentionDue.withLock { $0 = due }
    } catch {
      catalogue.failed("follow the rules of retention", error)
    }
  }

  /// Bytes of the recordings, and the free and total bytes of the disk.
  package func storage(on eventLoop: any EventLoop) -> EventLoopFuture<RecordingStorage> {
    catalogue.read(on: eventLoop) { database in
      let (bytes, deleted) = try database.bytes()
      let space = try? RecordingFolder.open(self.folder).space
      return RecordingStorage(
        recordedBytes: bytes, deletedBytes: deleted, freeBytes: space?.free, totalBytes: space?.total)
    }
  }
}

/// A finished recording that is open for reading.
package struct OpenedRecording: Sendable {
  package var range: FileRange
  package var entityTag: String
  /// The name that a client gave to it.
  package var title: String?
}

/// How full the disk is, in bytes.
package struct RecordingStorage: Sendable {
  package var recordedBytes: Int64
  /// Bytes of deleted recordings that can still be restored.
  package var deletedBytes: Int64
  /// Nil where the file system does not say.
  package var freeBytes: Int64?
  package var totalBytes: Int64?
}
