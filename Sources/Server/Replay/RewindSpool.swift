internal import FMP4
internal import Glibc
internal import Ingest
internal import Logging
internal import NIOPosix
internal import Synchronization

/// Keeps on disk what leaves the window of a stream while it is not recorded: a file without a name, which goes with its
/// last reader, also after a crash. The stream only puts events into a queue.
final class RewindSpool: FragmentSink {
  private let threads: NIOThreadPool
  private let queue = Mutex(Queue())
  private let job: Mutex<SpoolJob>

  /// Bytes of fragments that may wait for the disk; what exceeds them is left out up to the next segment.
  static let maximumWaitingBytes = 64 << 20

  private struct Queue {
    var items: [Item] = []
    var bytes = 0
    var isScheduled = false
    /// A fragment found no room, so its segment is left out.
    var isShedding = false
  }

  fileprivate enum Item {
    case event(StoredEvent)
    case segmentEnd(SegmentEnd)
    case stop
  }

  /// `folder` is where the file lies, `keepFree` the bytes that stay free there.
  init(
    stream: StreamName, epoch: String, folder: String, keepFree: Int64, archive: RecordingArchive,
    threads: NIOThreadPool, logger: Logger
  ) {
    self.threads = threads
    job = Mutex(
      SpoolJob(
        stream: stream, epoch: epoch, folder: folder, keepFree: keepFree, archive: archive, logger: logger))
  }

  func receive(_ event: StoredEvent) {
    switch event {
    case .segmentEnd(let view):
      guard let end = SegmentEnd(view) else { return }
      enqueue { queue in
        if !queue.isShedding { queue.items.append(.segmentEnd(end)) }
      }
    case .fragment(let fragment):
      enqueue { queue in
        if fragment.fragment.startsSegment { queue.isShedding = false }
        if queue.bytes + fragment.range.length > Self.maximumWaitingBytes { queue.isShedding = true }
        if queue.isShedding { return }
        queue.bytes += fragment.range.length
        queue.items.append(.event(event))
      }
    default: enqueue { $0.items.append(.event(event)) }
    }
  }

  /// Nothing follows, though the stream goes on: it is recorded from here on.
  func stop() {
    enqueue { $0.items.append(.stop) }
  }

  private func enqueue(_ change: (inout Queue) -> Void) {
    let mustSchedule = queue.withLock { queue -> Bool in
      change(&queue)
      guard !queue.items.isEmpty else { return false }
      defer { queue.isScheduled = true }
      return !queue.isScheduled
    }
    guard mustSchedule else { return }
    threads.submit { pool in
      if case .active = pool { self.drain() }
    }
  }

  private func drain() {
    while let items = take() {
      job.withLock { job in
        for item in items { job.receive(item) }
      }
    }
  }

  private func take() -> [Item]? {
    queue.withLock { queue in
      guard !queue.items.isEmpty else {
        queue.isScheduled = false
        return nil
      }
      defer {
        queue.items = []
        queue.bytes = 0
      }
      return queue.items
    }
  }
}

/// The part of a spool that works with the disk, on one thread at a time.
private final class SpoolJob {
  private let stream: StreamName
  private let epoch: String
  private let folder: String
  private let keepFree: Int64
  private let archive: RecordingArchive
  private let logger: Logger

  private var source: ReplaySource?
  private var descriptor: CInt = -1
  private var length: off_t = 0
  private var anchor: WallClockAnchor?
  /// Bytes before this have been given back.
  private var freed: UInt64 = 0
  /// The disk is too full, or does not work: nothing is written before the next segment.
  private var isPaused = false
  private var hasWarned = false

  init(
    stream: StreamName, epoch: String, folder: String, keepFree: Int64, archive: RecordingArchive, logger: Logger
  ) {
    self.stream = stream
    self.epoch = epoch
    self.folder = folder
    self.keepFree = keepFree
    self.archive = archive
    self.logger = logger
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  func receive(_ item: RewindSpool.Item) {
    switch item {
    case .event(let event): receive(event)
    case .segmentEnd(let end): source?.complete(end)
    case .stop: source?.end()
    }
  }

  private func receive(_ event: StoredEvent) {
    switch event {
    case .initialization(let initSegment):
      if source == nil { begin() }
      source?.change(to: initSegment, at: UInt64(length))
    case .fragment(let fragment): write(fragment)
    case .clock(let anchor): self.anchor = anchor
    case .discontinuity: source?.breakTimeline()
    case .end: source?.end()
    case .segmentEnd: break
    }
  }

  private func begin() {
    descriptor = Self.makeFile(in: folder)
    let copy = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return warn("cannot make a file for it in \(LogText.escaped(folder))") }
    let file = SharedFile(taking: copy, kind: .disk, origin: FileOrigin())
    let source = ReplaySource(stream: stream, name: nil, epoch: epoch, file: file)
    self.source = source
    archive.add(source)
  }

  /// A file without a name; -1 if it cannot be made.
  private static func makeFile(in folder: String) -> CInt {
    let nameless = open(folder, O_RDWR | temporaryFile | O_CLOEXEC, 0o600)
    if nameless >= 0 { return nameless }
    var template = Array("\(folder)/.weir-rewind-XXXXXX".utf8CString)
    let named = mkostemp(&template, O_CLOEXEC)
    if named >= 0 { unlink(template) }
    return named
  }

  /// O_TMPFILE of Linux, which the C header composes of two flags.
  private static let temporaryFile: CInt = 0o20000000 | O_DIRECTORY

  private func write(_ fragment: PublishedFragment) {
    guard let source else { return }
    if fragment.fragment.startsSegment { isPaused = !hasRoom }
    guard !isPaused else { return }
    let start = length
    var offset = off_t(fragment.range.offset)
    var left = fragment.range.length
    guard lseek(descriptor, length, SEEK_SET) >= 0 else { return fail(at: start) }
    while left > 0 {
      let sent = sendfile(descriptor, fragment.range.file.descriptor, &offset, left)
      if sent < 0, errno == EINTR { continue }
      guard sent > 0 else { return fail(at: start) }
      left -= sent
    }
    length += off_t(fragment.range.length)
    source.add(fragment, at: UInt64(start), anchor: anchor)
    if fragment.fragment.startsSegment { giveBack(source) }
  }

  private var hasRoom: Bool {
    var status = statvfs()
    guard fstatvfs(descriptor, &status) == 0 else { return true }
    let free = UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
    if free >= UInt64(max(0, keepFree)) { return true }
    warn("the disk is fuller than --keep-free allows")
    return false
  }

  private func fail(at start: off_t) {
    warn("the disk does not take it: \(String(cString: strerror(errno)))")
    ftruncate(descriptor, start)
    isPaused = true
  }

  private func warn(_ reason: String) {
    if !hasWarned { logger.warning("\(stream): viewers can go back no further than the window: \(reason)") }
    hasWarned = true
  }

  /// What nobody can go back to any more takes no room.
  private func giveBack(_ source: ReplaySource) {
    guard let limit = archive.epoch(epoch)?.reach else { return }
    let end = source.withIndex { index -> UInt64 in
      let oldest = index.end - limit
      return index.index(at: oldest).map { index.segments[$0].offset } ?? 0
    }
    guard end > freed + Self.smallestHole else { return }
    if fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(freed), off_t(end - freed)) == 0 {
      freed = end
    }
  }

  private static let smallestHole: UInt64 = 16 << 20
}
