package import Base
internal import FMP4
internal import Glibc
package import Logging
internal import NIOCore
internal import Playlists
package import Publishing
internal import Storage
package import Streams
internal import Synchronization

/// Writes a stream's window of segments and playlists to a folder, for a web server or CDN. The tree is the same as below
/// `/live`, so that relative addresses are valid there too. Files appear complete, by rename; playlists name only existing
/// files. One thread writes. When the disk is too slow, segments are left out (one warning); the live stream is not affected.
package final class SegmentFolder: FragmentSink {
  private let stream: StreamName
  private let folder: String
  private let thread: any WorkThreads
  private let logger: Logger
  private let pending = RankedMutex(.queue, Pending())
  private let newest = Mutex<EpochView?>(nil)
  /// Used by the writing thread only.
  private let written = RankedMutex(.recording, Written())

  private struct Pending {
    var jobs = 0
    var isBehind = false
    /// The last job has been submitted.
    var isOver = false
  }

  private struct Written: ~Copyable {
    /// Created, and locked, at the first write.
    var folder: EpochFolder?
    var inits: Set<Int> = []
    /// The files of each segment, for their removal.
    var segments: [(number: Int, paths: [String])] = []
    var hasFailed = false
  }

  /// When this many jobs wait for the disk, new segments are left out.
  private static let pendingLimit = 8

  /// `folder` is the value of `--segments`. `thread` has one thread, so that jobs stay in order.
  package init(stream: StreamName, folder: String, thread: any WorkThreads, logger: Logger) {
    self.stream = stream
    self.folder = folder
    self.thread = thread
    self.logger = logger
  }

  package var tellsDates: Bool { true }

  package var isClosing: Bool { pending.withLock { $0.isOver && $0.jobs > 0 } }

  package func receive(_ event: StoredEvent) {
    switch event {
    case .segmentEnd(let view):
      // The old view may be the last that holds a segment's memory, which has a lock.
      _ = newest.withLock { newest in
        defer { newest = view }
        return newest
      }
      submit(view, isLast: false)
    case .end: if let view = newest.withLock({ $0 }) { submit(view.ended, isLast: true) }
    case .initialization, .fragment, .clock, .redated, .discontinuity: break
    }
  }

  private func submit(_ view: EpochView, isLast: Bool) {
    let isAdmitted = pending.withLock { pending in
      guard isLast || pending.jobs < Self.pendingLimit else {
        let isNew = !pending.isBehind
        pending.isBehind = true
        if isNew {
          logger.of(stream).warning(
            "the disk of \(folder) is too slow, so segments are left out there; the live stream continues")
        }
        return false
      }
      pending.jobs += 1
      pending.isOver = isLast
      return true
    }
    guard isAdmitted else { return }
    thread.submit { _ in
      self.write(view)
      self.pending.withLock { $0.jobs -= 1 }
    }
  }

  // MARK: On the thread

  private func write(_ view: EpochView) {
    do throws(StorageError) {
      try written.withLock { written throws(StorageError) in
        try write(view, &written)
        written.hasFailed = false
      }
    } catch {
      let isNew = written.withLock { written in
        defer { written.hasFailed = true }
        return !written.hasFailed
      }
      if isNew { logger.of(stream).error("cannot write segments below \(folder): \(error); the live stream continues") }
    }
  }

  private func write(_ view: EpochView, _ written: inout Written) throws(StorageError) {
    let base = "\(folder)/\(stream)"
    let epoch = "\(base)/\(view.id)"
    let renditions = self.renditions(of: view.window)
    try FolderFile.makeFolder(base)
    if written.folder == nil { written.folder = try EpochFolder(making: epoch) }
    for path in renditions.map({ "\(epoch)/\($0.rawValue)" }) { try FolderFile.makeFolder(path) }
    for (version, initSegment) in view.window.inits where !written.inits.contains(version) {
      try write(initSegment, below: epoch)
      written.inits.insert(version)
    }
    // Includes earlier segments that were left out or failed, because playlists list them.
    let last = written.segments.last?.number ?? 0
    for segment in view.window.segments where segment.isComplete && segment.sequenceNumber > last && !segment.isOutage {
      written.segments.append((segment.sequenceNumber, try write(segment, view.window, below: epoch)))
    }
    for rendition in renditions {
      try FolderFile.replace(
        "\(epoch)/\(rendition.rawValue)/\(MediaName.playlist)",
        [.bytes(HLSMediaPlaylist(window: view.window, rendition: rendition).render())])
    }
    if renditions.contains(.video) {
      try FolderFile.replace(
        "\(epoch)/\(Rendition.video.rawValue)/\(MediaName.keyFrames)",
        [.bytes(HLSIFramePlaylist(window: view.window).render())])
    }
    // The manifest's time is the end of its newest segment, which is when that segment was complete.
    let published = view.window.listed.last.map { $0.wallStart &+ $0.duration.nanoseconds } ?? view.availabilityStart
    let manifest = DASHManifest(epoch: view, source: .folder).root(publishTime: published)
    try FolderFile.replace("\(base)/manifest.mpd", [.bytes(manifest.document)])
    try FolderFile.replace("\(base)/index.m3u8", [.bytes(multivariant(view).render())])
    removeForgotten(view.window, &written)
  }

  private func renditions(of window: LiveWindow) -> [Rendition] {
    let tracks = Set(window.inits.values.flatMap { $0.tracks.map { Rendition($0) } })
    return [.interleaved] + tracks.sorted { $0.rawValue < $1.rawValue }
  }

  /// In the interleaved layout, but for several tracks of a kind.
  private func multivariant(_ view: EpochView) -> HLSMultivariantPlaylist {
    let hasFurther = view.window.currentInit?.tracks.hasFurther ?? false
    return HLSMultivariantPlaylist(epoch: view, layout: hasFurther ? .separate : .interleaved)
  }

  private func write(_ initSegment: InitSegment, below epoch: String) throws(StorageError) {
    let name = MediaName.initSegment(initSegment.version)
    try FolderFile.replace("\(epoch)/\(Rendition.interleaved.rawValue)/\(name)", [.bytes(initSegment.interleaved)])
    for track in initSegment.tracks {
      let rendition = Rendition(track)
      try FolderFile.replace("\(epoch)/\(rendition.rawValue)/\(name)", [.bytes(initSegment.single(track))])
    }
  }

  private func write(
    _ segment: LiveSegment, _ window: LiveWindow, below epoch: String
  ) throws(StorageError) -> [String] {
    let name = MediaName.segment(segment.sequenceNumber)
    var paths = ["\(epoch)/\(Rendition.interleaved.rawValue)/\(name)"]
    try FolderFile.replace(paths[0], segment.pieces(of: nil))
    for track in window.inits[segment.initVersion]?.tracks ?? [] {
      guard let span = segment.span(of: track.id) else { continue }
      let rendition = Rendition(track)
      let version = window.initVersion(rendition, of: segment)
      let path = "\(epoch)/\(rendition.rawValue)/\(MediaName.segment(at: span.listed.start, initVersion: version))"
      try FolderFile.replace(path, segment.pieces(of: track.id))
      paths.append(path)
    }
    return paths
  }

  /// Removes the files of segments that left the window.
  private func removeForgotten(_ window: LiveWindow, _ written: inout Written) {
    guard let oldest = window.segments.first?.sequenceNumber else { return }
    while let first = written.segments.first, first.number < oldest {
      for path in first.paths { unlink(path) }
      written.segments.removeFirst()
    }
  }
}
