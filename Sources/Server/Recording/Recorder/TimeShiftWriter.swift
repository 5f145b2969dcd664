internal import Base
internal import FMP4
internal import Glibc
internal import Logging
internal import Publishing
internal import RecordingFiles
internal import Storage
internal import Streams

/// Keeps on disk what leaves the live window of a stream that is not recorded. The file has no name, so it disappears with its
/// last reader, also after a crash. It holds no sample tables, and returns to the file system what is out of reach, because a
/// stream may go on for months.
final class TimeShiftWriter: RecorderWriter {
  private let stream: StreamName
  private let epoch: String?
  private let settings: RecordingSettings

  private var source: ReplaySource?
  private var descriptor: CInt = -1
  private var length: off_t = 0
  private var anchor: WallClockAnchor?
  /// Bytes of the file before this position have been returned to the file system.
  private var releasedBytes: UInt64 = 0
  /// The disk is too full or failed: nothing is written before the next segment.
  private var isPaused = false
  private var hasWarned = false

  /// `settings.folder` holds the file, and `settings.archive` serves it.
  init(_ settings: RecordingSettings, stream: StreamName, epoch: String?) {
    self.settings = settings
    self.stream = stream
    self.epoch = epoch
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  /// Only its stream ends it.
  var isOver: Bool { false }

  func handle(_ work: RecorderQueue.Work) {
    switch work {
    case .item(.event(let event)): receive(event)
    case .item(.segmentEnd(let end)): source?.complete(end)
    case .item(.stop), .item(.cancel): source?.end()
    // The index knows which segments are incomplete.
    case .item(.shed), .item(.shedUntil), .item(.keyless), .tick: break
    }
  }

  private func receive(_ event: StoredEvent) {
    switch event {
    case .initialization(let initSegment):
      if source == nil { begin() }
      source?.change(to: initSegment, at: UInt64(length))
    case .fragment(let fragment): write(fragment)
    case .clock(let anchor): self.anchor = anchor
    case .redated(let anchor):
      self.anchor = anchor
      source?.redate(by: anchor)
    case .discontinuity: source?.breakTimeline()
    case .end: source?.end()
    case .segmentEnd: break
    }
  }

  private func begin() {
    descriptor = Self.makeFile(in: settings.folder)
    let copy = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard copy >= 0 else { return warn("cannot create its file in \(LogText.escaped(settings.folder))") }
    let file = SharedFile(taking: copy, kind: .disk, origin: FileOrigin())
    let source = ReplaySource(stream: stream, name: nil, epoch: epoch, file: file)
    self.source = source
    settings.archive?.add(source)
  }

  /// Opens a file without a name; -1 if that fails.
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
    do throws(StorageError) {
      try File(descriptor).write(fragment.range, at: Int(start))
    } catch {
      warn("cannot write to the disk: \(String(cString: strerror(error.errno)))")
      ftruncate(descriptor, start)
      isPaused = true
      return
    }
    length += off_t(fragment.range.length)
    source.add(fragment, at: UInt64(start), length: fragment.range.length, anchor: anchor)
    if fragment.fragment.startsSegment { punchHole(source) }
  }

  private var hasRoom: Bool {
    guard let free = File(descriptor).space?.free, free < settings.keepFree else { return true }
    warn("the disk has less free space than --keep-free")
    return false
  }

  private func warn(_ reason: String) {
    if !hasWarned {
      settings.logger.of(stream).warning("viewers cannot rewind further than the live window: \(reason)")
    }
    hasWarned = true
  }

  /// Returns to the file system the bytes that are beyond the reach of rewinding.
  private func punchHole(_ source: ReplaySource) {
    guard let limit = epoch.flatMap({ settings.archive?.epoch($0)?.reach }) else { return }
    let end = source.withIndex { index -> UInt64 in
      let oldest = index.end - limit
      return index.index(at: oldest).map { index.segments[$0].offset } ?? 0
    }
    guard end > releasedBytes + Self.smallestHole else { return }
    if fallocate(
      descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(releasedBytes), off_t(end - releasedBytes)) == 0
    {
      releasedBytes = end
    }
  }

  private static let smallestHole: UInt64 = 16 << 20
}
