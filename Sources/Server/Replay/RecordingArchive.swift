internal import FMP4
internal import Glibc
internal import Ingest
internal import Logging
internal import NIOCore
internal import NIOPosix
internal import Synchronization

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
  private let state = Mutex(State())

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
    var epochs: [String: EpochArchive] = [:]
  }

  /// Finished recordings whose index is kept: ten hours of one take 1.5 MB.
  static let maximumOpened = 32
  /// What stands between head and media is not read if it is larger.
  private static let maximumIndexBytes: UInt64 = 64 << 20

  init(folder: String?, rewind: MediaTime? = nil, publicURL: PublicURL? = nil) {
    self.folder = folder
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
    stream: StreamName, epoch: String?, file: RecordingFile, _ disclosure: RecordingDisclosure = .whileWritten
  ) -> ReplaySource? {
    guard let shared = file.shared() else { return nil }
    let source = ReplaySource(stream: stream, name: file.name.stem, epoch: epoch, file: shared)
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

  func end(_ source: ReplaySource, _ end: End) {
    source.end()
    guard let name = source.name else { return }
    let key = Key(stream: source.stream, name: name)
    state.withLock { state in
      state.growing[key] = nil
      if end == .finished { state.remember(source, as: key) }
    }
  }

  // MARK: Rewinding

  /// A life of a stream begins.
  func begin(epoch: String) {
    guard let rewind else { return }
    state.withLock { $0.epochs[epoch] = EpochArchive(length: rewind) }
  }

  /// A file of an epoch, which rewinding reaches. What is written after the epoch is forgotten, for a disk that was late,
  /// nobody asks for.
  func add(_ source: ReplaySource) {
    guard let epoch = source.epoch else { return }
    self.epoch(epoch)?.add(source)
  }

  /// What there is of an epoch besides its window.
  func epoch(_ id: String) -> EpochArchive? { state.withLock { $0.epochs[id] } }

  /// The epoch is over: its addresses stay for as long as an ended stream stays available.
  func forgetLater(epoch: String?) {
    guard let epoch, rewind != nil else { return }
    let delay = TimeAmount.nanoseconds(StreamSettings.endedAvailability.nanoseconds) + .seconds(5)
    NIOSingletons.posixEventLoopGroup.next().scheduleTask(in: delay) { [weak self] in
      _ = self?.state.withLock { $0.epochs.removeValue(forKey: epoch) }
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

  /// A recording by its name without its ending, finished or being written; nil when there is none.
  func open(_ stream: StreamName, _ name: String, on eventLoop: any EventLoop) -> EventLoopFuture<ReplaySource?> {
    threads.runIfActive(eventLoop: eventLoop) { self.open(stream, name) }
  }

  /// The same, waiting for the disk.
  func open(_ stream: StreamName, _ name: String) -> ReplaySource? {
    let key = Key(stream: stream, name: name)
    if let growing = state.withLock({ $0.growing[key] }) { return growing }
    guard let folder, let recording = RecordingName(finished: name + ".mp4"), recording.stem == name,
      let directory = try? RecordingFolder.open(folder).folder(of: stream, ifAbsent: .fail),
      let (descriptor, status) = directory.openFile(recording.finished, O_RDONLY)
    else {
      state.withLock { $0.forget(key) }
      return nil
    }
    let file = SharedFile(taking: descriptor, kind: .disk)
    let known = state.withLock { state in state.opened.last { $0.key == key }?.source }
    if let known, known.reader.file.isSame(as: status) {
      state.withLock { $0.remember(known, as: key) }
      return known
    }
    guard let source = try? Self.load(file, size: UInt64(clamping: status.st_size), stream: stream, name: name) else {
      return nil
    }
    state.withLock { $0.remember(source, as: key) }
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
    guard let layout = try whole.layout(size: size) else { return nil }
    let media = file.shifted(by: Int(clamping: layout.contentStart))
    guard let media else { return nil }
    let reader = RecordingFileReader(file: media)
    var index: RecordingIndex?
    if let place = layout.index, let bytes = try storedIndex(at: place, in: whole) {
      index = RecordingIndex(stored: bytes, length: layout.length) { offset in
        (try? reader.tracks(at: offset, end: layout.length)).flatMap { $0 }
      }
    }
    var found: RecordingIndex
    if let index { found = index } else { found = try reader.index(length: layout.length) }
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
    if let remark = try read(start, RecordingRemark.headSize).flatMap(RecordingRemark.size) { start += UInt64(remark) }
    guard let size = try read(start, RecordingIndex.storedHeadSize).flatMap(RecordingIndex.size(ofStored:)) else {
      return nil
    }
    return try read(start, size)
  }
}

extension RecordingArchive.State {
  fileprivate mutating func remember(_ source: ReplaySource, as key: RecordingArchive.Key) {
    forget(key)
    opened.append((key, source))
    if opened.count > RecordingArchive.maximumOpened { opened.removeFirst() }
  }

  fileprivate mutating func forget(_ key: RecordingArchive.Key) {
    opened.removeAll { $0.key == key }
  }
}

extension SharedFile {
  /// The same file, its offsets counting from that many bytes on.
  func shifted(by shift: Int) -> SharedFile? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    return copy < 0 ? nil : SharedFile(taking: copy, kind: .disk, origin: FileOrigin(shift: shift))
  }

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
