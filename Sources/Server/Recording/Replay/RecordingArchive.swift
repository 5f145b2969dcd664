internal import Basics
internal import FMP4
internal import Glibc
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Storage

/// Everything that can be replayed: recordings as they are written, finished ones that somebody asked for lately, and
/// what rewinding reaches of each life of a stream.
final class RecordingArchive: RecordingObserver {
  /// The recordings folder; nil where nothing is recorded.
  private let folder: String?
  /// How far live addresses reach back; nil for no further than the window.
  let rewind: MediaTime?
  /// Where players find this server; nil where nobody said.
  let publicURL: PublicURL?
  /// Opens files and reads heads, so that event loops need not wait for the disk.
  let threads = NIOThreadPool(numberOfThreads: 2)
  private let files: OpenRecordings
  private let state = RankedMutex(.archive, State())

  /// Names a recording: its stream, and its name without its ending.
  struct Key: Hashable, Sendable {
    var stream: StreamName
    var name: String
  }

  fileprivate struct State {
    var growing: [Key: ReplaySource] = [:]
    /// Finished ones, the one that was asked for last at the end.
    var opened: [(key: Key, source: ReplaySource)] = []
    /// The files of an epoch, in order.
    var epochs: [String: RewindArchive] = [:]
    /// The newest epochs of a stream, as many as can be asked for.
    var lives: [StreamName: [String]] = [:]
  }

  /// Finished recordings whose index is kept, and whose file is kept open: ten hours of one take 1.5 MB.
  private static let maximumOpened = 32
  /// Of the files that can be open for viewers, those that are kept open are at most one in so many.
  private static let keptShare = 4
  /// What stands between head and media is not read if it is larger.
  private static let maximumIndexBytes: UInt64 = 64 << 20

  /// `files` are shared with those who download recordings.
  init(
    folder: String?, rewind: MediaTime? = nil, publicURL: PublicURL? = nil, files: OpenRecordings = OpenRecordings()
  ) {
    self.folder = folder
    self.files = files
    self.rewind = rewind
    self.publicURL = publicURL
    threads.start()
  }

  deinit {
    threads.shutdownGracefully { _ in }
  }

  // MARK: Being written

  /// A recording begins. Nil when its file cannot be read beside being written.
  func begin(
    stream: StreamName, epoch: String?, file: RecordingFile, _ disclosure: RecordingVisibility = .whileWritten
  ) -> ReplaySource? {
    let claim = FileClaim(on: files.descriptors, for: rewind == nil ? .reading : .rewinding)
    guard let shared = file.shared(closed: claim.giveBack) else { return nil }
    let source = ReplaySource(stream: stream, name: file.name.stem, epoch: epoch, file: shared, claim: claim)
    if disclosure == .whileWritten {
      state.withLock { $0.growing[Key(stream: stream, name: file.name.stem)] = source }
    }
    add(source)
    return source
  }

  /// What became of a recording's file.
  enum End {
    /// It is a movie under its final name.
    case finished
    /// The movie is a copy, or there is none.
    case left
    /// Nobody wants it.
    case discarded
  }

  /// Its descriptor, which was its recorder's, is a file's from here on. Waits for a moment where none is free.
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

  /// Where there is no descriptor for it, the oldest files that viewers can go back to are let go, each time of the epoch that
  /// has most; else it is let go itself. Whether it stays.
  private func keep(_ source: ReplaySource) -> Bool {
    guard let claim = source.claim else { return true }
    if claim.take() { return true }
    for _ in 0..<Self.attempts {
      guard letOldestGo() else { break }
      // It is closed on another thread, and not before whoever reads it is done.
      for _ in 0..<Self.looks {
        usleep(Self.pause)
        if claim.take() { return true }
      }
    }
    // It counts all the same, for as long as somebody reads it.
    claim.note()
    if let epoch = source.epoch { self.epoch(epoch)?.remove(source) }
    return false
  }

  /// Holds nothing of it when it returns.
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

  /// A life of a stream begins. Addresses are known of it and of the one before: the files of older ones are let go.
  func begin(epoch: String, of stream: StreamName) {
    guard let rewind else { return }
    state.withLock { state in
      state.epochs[epoch] = RewindArchive(length: rewind)
      let lives = state.lives[stream, default: []] + [epoch]
      for gone in lives.dropLast(2) { state.epochs[gone] = nil }
      state.lives[stream] = lives.suffix(2)
    }
  }

  /// A file of an epoch, which rewinding reaches. What is written after the epoch is forgotten, for a disk that was late,
  /// nobody asks for.
  func add(_ source: ReplaySource) {
    guard let epoch = source.epoch else { return }
    self.epoch(epoch)?.add(source)
  }

  /// What there is of an epoch besides its window.
  func epoch(_ id: String) -> RewindArchive? { state.withLock { $0.epochs[id] } }

  /// The epoch is over: its addresses stay for as long as an ended stream stays available.
  func forgetLater(epoch: String, of stream: StreamName) {
    guard rewind != nil else { return }
    let delay = TimeAmount.nanoseconds(StreamSettings.endedAvailability.nanoseconds) + .seconds(5)
    NIOSingletons.posixEventLoopGroup.next().scheduleTask(in: delay) { [weak self] in
      self?.state.withLock { state in
        state.epochs[epoch] = nil
        let lives = state.lives[stream]?.filter { $0 != epoch } ?? []
        state.lives[stream] = lives.isEmpty ? nil : lives
      }
    }
  }

  // MARK: What is removed

  /// A file that was removed takes room on the disk for as long as it is open here.
  func receive(_ event: RecordingEvent) {
    guard case .deleted = event.kind else { return }
    let key = Key(stream: event.facts.stream, name: event.facts.name.stem)
    let epochs = state.withLock { state in
      state.forget(key)
      return Array(state.epochs.values)
    }
    for epoch in epochs { epoch.remove(recording: key.name, of: key.stream) }
  }

  // MARK: Opening

  /// A recording by its name without its ending, finished or being written; nil when there is none. Throws
  /// `OpenRecordings.Full`.
  func open(_ stream: StreamName, _ name: String, on eventLoop: any EventLoop) -> EventLoopFuture<ReplaySource?> {
    threads.runIfActive(eventLoop: eventLoop) { try self.open(stream, name) }
  }

  /// The same, waiting for the disk.
  func open(
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
    // Removed meanwhile.
    if file.isUnlinked { state.withLock { $0.forget(key) } }
    return source
  }

  /// Reads the index of a finished recording, or of any fragmented file; walks its fragments where it has none. Where the
  /// file tells no time of day, its name (without the ending) may. Nil for what is neither.
  static func load(
    _ file: SharedFile, size: UInt64, stream: StreamName, name: String
  ) throws(RecordingFileReader.Unreadable) -> ReplaySource? {
    let whole = RecordingFileReader(file: file)
    guard let outline = try whole.outline(size: size) else { return nil }
    let length = outline.content.upperBound - outline.content.lowerBound
    let media = SharedFile(file, shiftedBy: Int(clamping: outline.content.lowerBound))
    let reader = RecordingFileReader(file: media)
    var index: RecordingIndex?
    if let place = outline.annex, let bytes = try storedIndex(at: place, in: whole) {
      index = RecordingIndex(stored: bytes, length: length) { offset in
        (try? reader.tracks(at: offset, end: length)).flatMap { $0 }
      }
    }
    var found: RecordingIndex
    if let index { found = index } else { found = try reader.index(length: length) }
    guard !found.segments.isEmpty else { return nil }
    if let start = RecordingName(finished: name + ".mp4")?.startNanoseconds { found.assume(start: start) }
    return ReplaySource(stream: stream, name: name, file: media, index: found)
  }

  /// What stands behind the remark in a `free` box, and no more of it than that is: the box may be ten times as large.
  private static func storedIndex(
    at place: Range<UInt64>, in file: RecordingFileReader
  ) throws(RecordingFileReader.Unreadable) -> ByteBuffer? {
    func read(_ offset: UInt64, _ count: Int) throws(RecordingFileReader.Unreadable) -> ByteBuffer? {
      guard offset <= place.upperBound, UInt64(count) <= min(place.upperBound - offset, maximumIndexBytes) else {
        return nil
      }
      return try file.read(at: offset, count: count)
    }
    var start = place.lowerBound
    if let metadata = try read(start, RecordingMetadata.headSize).flatMap(RecordingMetadata.size) {
      start += UInt64(metadata)
    }
    guard let size = try read(start, RecordingIndex.storedHeadSize).flatMap(RecordingIndex.size(ofStored:)) else {
      return nil
    }
    return try read(start, size)
  }
}

extension RecordingArchive.State {
  fileprivate mutating func forget(_ key: RecordingArchive.Key) {
    opened.removeAll { $0.key == key }
  }
}

extension SharedFile {
  /// Whether it has no name any more.
  fileprivate var isUnlinked: Bool {
    var status = stat()
    return fstat(descriptor, &status) == 0 && status.st_nlink == 0
  }

  /// Whether that is what this file is now.
  fileprivate func isSame(as status: stat) -> Bool {
    var own = stat()
    return fstat(descriptor, &own) == 0 && own.st_ino == status.st_ino && own.st_dev == status.st_dev
      && own.st_size == status.st_size && own.st_mtim.tv_sec == status.st_mtim.tv_sec
      && own.st_mtim.tv_nsec == status.st_mtim.tv_nsec
  }
}
