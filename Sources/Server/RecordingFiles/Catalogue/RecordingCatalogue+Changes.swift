package import FMP4
internal import Logging
package import NIOCore
internal import Publishing
internal import Streams

/// Changes to finished recordings on request. All of them run on the catalogue's thread.
extension RecordingCatalogue {
  /// Moves a recording to the folder of deleted ones, from which it can be restored for a while. `now` is in nanoseconds since
  /// 1970, `who` is for the event.
  package func delete(
    _ key: RecordingKey, by who: String? = nil, now: WallTime, on eventLoop: any EventLoop
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    change(key, on: eventLoop) { entry throws(CatalogueRefusal) in
      guard entry.deletedAt == nil else { throw .notFound }
      guard entry.state != .running else { throw .running }
      guard !entry.isProtected else { throw .protected }
      let (folder, deleted) = try self.folders(of: key.stream)
      let file = entry.isPlayable ? key.name.finished : key.name.unfinished
      self.announce(.deleted(by: who), entry.facts)
      try Self.onDisk { () throws(RecordingError) in try folder.move(file, to: deleted) }
      // Use the inode's time, which is the one left after a loss of the catalogue.
      let moved = deleted.look(at: file)?.changedAt ?? now
      entry.deletedAt = (moved &- now).magnitude < Self.precisionOfDeletions ? moved : now
      self.logger.of(key.stream).notice("deleted \(entry.file); it can be restored for a while")
    }
  }

  /// In nanoseconds: after a change of the system clock the times differ by more.
  private static let precisionOfDeletions: UInt64 = 2_000_000_000

  /// Undoes a deletion.
  package func restore(
    _ key: RecordingKey, on eventLoop: any EventLoop
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    change(key, on: eventLoop) { entry throws(CatalogueRefusal) in
      guard entry.deletedAt != nil else { throw .notDeleted }
      let (folder, deleted) = try self.folders(of: key.stream)
      try Self.onDisk { () throws(RecordingError) in
        try deleted.move(entry.isPlayable ? key.name.finished : key.name.unfinished, to: folder)
      }
      entry.deletedAt = nil
      self.announce(.restored, entry.facts)
      self.logger.of(key.stream).notice("restored \(entry.file)")
    }
  }

  /// Protection is stored in the file's permissions, which survive a loss of the catalogue.
  package func setProtection(
    _ isProtected: Bool, _ key: RecordingKey, on eventLoop: any EventLoop
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    change(key, on: eventLoop) { entry throws(CatalogueRefusal) in
      guard entry.deletedAt == nil else { throw .notFound }
      guard entry.state != .running else { throw .running }
      guard entry.isPlayable else { throw .unfinished }
      guard entry.isProtected != isProtected else { return }
      let (folder, _) = try self.folders(of: key.stream)
      try Self.onDisk { () throws(RecordingError) in try folder.setReadOnly(isProtected, key.name.finished) }
      entry.isProtected = isProtected
    }
  }

  /// Replaces what is said about a recording, which may also be running or deleted.
  package func setAnnotation(
    _ annotation: RecordingAnnotation, _ key: RecordingKey, on eventLoop: any EventLoop
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    change(on: eventLoop) { database in
      do {
        let entry = try database.write { database -> RecordingEntry? in
          guard try database.entry(key) != nil else { return nil }
          try database.put(annotation, of: key)
          return try database.entry(key)
        }
        return entry.map { .success($0) } ?? .failure(.notFound)
      } catch {
        return .failure(.disk("the catalogue cannot keep it: \(error)"))
      }
    }
  }

  private func change(
    _ key: RecordingKey, on eventLoop: any EventLoop,
    _ change: @escaping @Sendable (inout RecordingEntry) throws(CatalogueRefusal) -> Void
  ) -> EventLoopFuture<Result<RecordingEntry, CatalogueRefusal>> {
    self.change(on: eventLoop) { database in
      guard var entry = try database.read({ try $0.entry(key) }) else { return .failure(.notFound) }
      do throws(CatalogueRefusal) {
        try change(&entry)
      } catch {
        return .failure(error)
      }
      do {
        try database.write { [entry] in try $0.put(entry) }
      } catch {
        // The files have been changed already.
        self.failed("note a change", error)
      }
      return .success(entry)
    }
  }

  private func folders(
    of stream: StreamName
  ) throws(CatalogueRefusal) -> (folder: RecordingFolder, deleted: RecordingFolder) {
    try Self.onDisk { () throws(RecordingError) in
      let folder = try RecordingFolder.open(folder).folder(of: stream, ifAbsent: .fail)
      return (folder, try folder.folder(named: RecordingFolder.deletedName, ifAbsent: .make))
    }
  }

  private static func onDisk<Value>(
    _ work: () throws(RecordingError) -> Value
  ) throws(CatalogueRefusal) -> Value {
    do throws(RecordingError) {
      return try work()
    } catch {
      throw .disk(error.description)
    }
  }
}
