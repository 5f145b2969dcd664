package import Base
package import FMP4
internal import Glibc
internal import Logging
internal import NIOCore
internal import NIOPosix
package import Publishing
package import RecordingFiles
internal import RecordingFormat
internal import Storage
internal import Streams

/// Everything that can be replayed: recordings being written, finished ones opened recently, and the files that rewinding needs
/// for each epoch of a stream.
package final class RecordingArchive: RecordingObserver {
  /// The recordings folder; nil where nothing is recorded.
  private let folder: String?
  /// How far live addresses reach back; nil for no further than the window.
  private let rewind: @Sendable (StreamName) -> MediaTime?
  /// Address at which players find this server; nil if none is configured.
  package let publicURL: PublicURL?
  /// Threads that open files and read headers, so that event loops do not wait for the disk.
  package let threads: any WorkThreads
  private let files: OpenRecordings
  private let state = RankedMutex(.archive, State())

  /// Identifies a recording: its stream, and its name without an ending.
  struct Key: Hashable, Sendable {
    var stream: StreamName
    var name: String
  }

  fileprivate struct State {
    var growing: [Key: ReplaySource] = [:]
    /// Finished recordings, the most recently opened last.
    var opened: [(key: Key, source: ReplaySource)] = []
    /// The files of each epoch, in order.
    var epochs: [String: RewindArchive] = [:]
    /// The newest epochs of each stream, as many as have valid addresses.
    var lives: [StreamName: [String]] = [:]
  }

  /// Finished recordings whose index is kept and whose file stays open. Ten hours of one take 1.5 MB.
  private static let maximumOpened = 32
  /// At most one in this many of the descriptors for viewers is for files kept open.
  private static let keptShare = 4
  /// The data between moov and media is not read if it is larger.
  private static let maximumIndexBytes: UInt64 = 64 << 20

  /// `files` is shared with downloads of recordings.
  package init(
    folder: String?, rewind: @escaping @Sendable (StreamName) -> MediaTime? = { _ in nil }, publicURL: PublicURL? = nil,
    files: OpenRecordings = OpenRecordings(), threads: any WorkThreads = WorkQueue("weir-reading", threads: 2)
  ) {
    self.threads = threads
    self.folder = folder
    self.files = files
    self.rewind = rewind
    self.publicURL = publicURL
  }

  // MARK: Being written

  /// A recording begins. Nil if its file cannot be opened for reading.
  func begin(
    stream: StreamName, epoch: String?, file: RecordingFile, _ visibility: RecordingVisibility = .whileWritten
  ) -> ReplaySource? {
    let claim = FileClaim(on: files.descriptors, for: rewind(stream) == nil ? .reading : .rewinding)
    guard let shared = file.shared(closed: claim.giveBack) else { return nil }
    let source = ReplaySource(stream: stream, name: file.name.stem, epoch: epoch, file: shared, claim: claim)
    if visibility == .whileWritten {
      state.withLock { $0.growing[Key(stream: stream, name: file.name.stem)] = source }
    }
    add(source)
    return source
  }

  /// Result of finishing a recording's file.
  enum End {
    /// It is a movie under its final name.
    case finished
    /// The movie is a separate copy, or there is none.
    case left
    /// The recording was cancelled.
    case discarded
  }

  /// The file's descriptor, charged to its recorder so far, is charged to this archive from now on. Waits for a moment if none is
  /// free.
  func end(_ source: ReplaySource, _ end: End) {
    source.end()
    guard let name = source.name else { return }
    let isKept = keep(source)
    let key = Key(stream: source.stream, name: name)
    state.withLock { state in
      state.growing[key] = nil
      if isKept, end == .finished { remember(source, as: key, &state) }
    }
  }

  /// Keeps the source if a descriptor is free. Otherwise the oldest rewindable files are released, each time of the epoch that
  /// has most. If that does not help, the source itself is released. Returns whether it stays.
  private func keep(_ source: ReplaySource) -> Bool {
    guard let claim = source.claim else { return true }
    if claim.take() { return true }
    for _ in 0..<Self.attempts {
      guard letOldestGo() else { break }
      // It is closed on another thread, after its last reader.
      for _ in 0..<Self.looks {
        usleep(Self.pause)
        if claim.take() { return true }
      }
    }
    // It still counts while a client reads it.
    claim.note()
    if let epoch = source.epoch { self.epoch(epoch)?.remove(source) }
    return false
  }

  /// Releases the oldest file. This function keeps no reference to it.
  private func letOldestGo() -> Bool {
    let epochs = state.withLock { Array($0.epochs.values) }
    guard let largest = epochs.max(by: { $0.sources.count < $1.sources.count }), let gone = largest.letOldestGo() else {
      return false
    }
    state.withLock { state in state.opened.removeAll { $0.source === gone } }
    return true
  }

  private static let attempts = 4
  private static let looks = 20
  /// Microseconds.
  private static let pause: UInt32 = 5000

  private func remember(_ source: ReplaySource, as key: Key, _ state: inout State) {
    state.forget(key)
    state.opened.append((key, source))
    if state.opened.count > min(Self.maximumOpened, max(1, files.descriptors.files / Self.keptShare)) {
      state.opened.removeFirst()
    }
  }

  // MARK: Rewinding

  /// An epoch of a stream begins. Its addresses and those of the epoch before are valid; the files of older epochs are released.
  func begin(epoch: String, of stream: StreamName) {
    guard let rewind = rewind(stream) else { return }
    state.withLock { state in
      state.epochs[epoch] = RewindArchive(length: rewind)
      let lives = state.lives[stream, default: []] + [epoch]
      for gone in lives.dropLast(2) { state.epochs[gone] = nil }
      state.lives[stream] = lives.suffix(2)
    }
  }

  /// Adds a file of an epoch for rewinding. A slow disk may deliver a file after its epoch was forgotten; no valid address leads
  /// to that file.
  func add(_ source: ReplaySource) {
    guard let epoch = source.epoch else { return }
    self.epoch(epoch)?.add(source)
  }

  /// The files of an epoch.
  package func epoch(_ id: String) -> RewindArchive? { state.withLock { $0.epochs[id] } }

  /// The epoch has ended. Its addresses stay valid for as long as an ended stream stays available.
  func forgetLater(epoch: String, of stream: StreamName) {
    guard rewind(stream) != nil else { return }
    let delay = TimeAmount.nanoseconds(StreamSettings.endedAvailability.nanoseconds) + .seconds(5)
    NIOSingletons.posixEventLoopGroup.next().scheduleTask(in: delay) { [weak self] in
      self?.state.withLock { state in
        state.epochs[epoch] = nil
        let lives = state.lives[stream]?.filter { $0 != epoch } ?? []
        state.lives[stream] = lives.isEmpty ? nil : lives
      }
    }
  }

  // MARK: Removal

  /// Releases a removed file, which occupies the disk for as long as it is open here.
  package func receive(_ event: RecordingEvent) {
    guard case .deleted = event.kind else { return }
    let key = Key(stream: event.facts.stream, name: event.facts.name.stem)
    let epochs = state.withLock { state in
      state.forget(key)
      return Array(state.epochs.values)
    }
    for epoch in epochs { epoch.remove(recording: key.name, of: key.stream) }
  }

  // MARK: Opening

  /// A recording that is being written; nil for any other.
  package func growing(_ stream: StreamName, _ name: String) -> ReplaySource? {
    state.withLock { $0.growing[Key(stream: stream, name: name)] }
  }

  /// A recording by its name without an ending, finished or being written; nil if there is none. Throws `OpenRecordings.Full`.
  func open(_ stream: StreamName, _ name: String, on eventLoop: any EventLoop) -> EventLoopFuture<ReplaySource?> {
    threads.runIfActive(eventLoop: eventLoop) { try self.open(stream, name) }
  }

  /// The same on the calling thread, which waits for the disk.
  package func open(
    _ stream: StreamName, _ name: String, for client: NetworkAddress? = nil
  ) throws(OpenRecordings.Full) -> ReplaySource? {
    let key = Key(stream: stream, name: name)
    if let growing = state.withLock({ $0.growing[key] }) { return growing }
    guard let folder, let recording = RecordingName(finished: name + ".mp4"), recording.stem == name,
      let directory = try? RecordingFolder.open(folder).folder(of: stream, ifAbsent: .fail),
      let status = directory.status(of: recording.finished)
    else {
      state.withLock { $0.forget(key) }
      return nil
    }
    let known = state.withLock { state in state.opened.last { $0.key == key }?.source }
    if let known, known.reader.file.isSame(as: status) {
      state.withLock { remember(known, as: key, &$0) }
      return known
    }
    guard let (file, status) = try files.open(recording.finished, in: directory, for: client) else { return nil }
    guard let source = try? Self.load(file, size: UInt64(clamping: status.st_size), stream: stream, name: name) else {
      return nil
    }
    state.withLock { remember(source, as: key, &$0) }
    // It was removed in the meantime.
    if file.isUnlinked { state.withLock { $0.forget(key) } }
    return source
  }

  /// Reads the index of a finished recording, or of any fragmented file. Walks the fragments if there is no stored index. If the
  /// file contains no wall-clock time, its name without the ending may. Nil for any other file.
  static func load(
    _ file: SharedFile, size: UInt64, stream: StreamName, name: String
  ) throws(RecordingFileReader.Unreadable) -> ReplaySource? {
    let whole = RecordingFileReader(file: file)
    guard let outline = try whole.outline(size: size) else { return nil }
    let length = outline.content.upperBound - outline.content.lowerBound
    let media = SharedFile(file, shiftedBy: Int(clamping: outline.content.lowerBound))
    let reader = RecordingFileReader(file: media)
    var index: RecordingIndex?
    var captions: String?
    if let place = outline.annex, let (metadata, bytes) = try annex(at: place, in: whole) {
      captions = metadata?.captions
      index = RecordingIndex(stored: bytes, length: length) { offset in
        (try? reader.tracks(at: offset, end: length)).flatMap { $0 }
      }
    }
    var found: RecordingIndex
    if let index { found = index } else { found = try reader.index(length: length) }
    guard !found.segments.isEmpty else { return nil }
    if let start = RecordingName(finished: name + ".mp4")?.startTime { found.assume(start: start) }
    if let captions { found.captions = CaptionDeclarations(text: captions) }
    return ReplaySource(stream: stream, name: name, file: media, index: found)
  }

  /// The metadata in a `free` box and the index after them, without the rest of the box, which may be ten times as large.
  private static func annex(
    at place: Range<UInt64>, in file: RecordingFileReader
  ) throws(RecordingFileReader.Unreadable) -> (RecordingMetadata?, index: ByteBuffer)? {
    func read(_ offset: UInt64, _ count: Int) throws(RecordingFileReader.Unreadable) -> ByteBuffer? {
      guard offset <= place.upperBound, UInt64(count) <= min(place.upperBound - offset, maximumIndexBytes) else {
        return nil
      }
      return try file.read(at: offset, count: count)
    }
    var start = place.lowerBound
    var metadata: RecordingMetadata?
    if let size = try read(start, RecordingMetadata.headSize).flatMap(RecordingMetadata.size) {
      metadata = try read(start, size).flatMap { RecordingMetadata(stored: $0) }
      start += UInt64(size)
    }
    guard let size = try read(start, RecordingIndex.storedHeadSize).flatMap(RecordingIndex.size(ofStored:)) else {
      return nil
    }
    return try read(start, size).map { (metadata, $0) }
  }
}

extension RecordingArchive.State {
  fileprivate mutating func forget(_ key: RecordingArchive.Key) {
    opened.removeAll { $0.key == key }
  }
}

extension SharedFile {
  /// Whether the file has no name any more.
  fileprivate var isUnlinked: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_nlink == 0
  }

  /// Whether `status` is that of this file in its present state.
  fileprivate func isSame(as status: stat) -> Bool {
    var own = stat()
    return fstat(descriptor, &own) == 0 && own.st_ino == status.st_ino && own.st_dev == status.st_dev
      && own.st_size == status.st_size && own.st_mtim.tv_sec == status.st_mtim.tv_sec
      && own.st_mtim.tv_nsec == status.st_mtim.tv_nsec
  }
}
