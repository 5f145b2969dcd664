import Base
import FMP4
import Publishing
@testable import Recording
import RecordingFormat
import Storage
@testable import Streams
import Glibc
import Logging
import NIOCore
import NIOPosix
import Support
import Synchronization
import Testing

/// A folder of its own for a test, removed with it.
final class TemporaryFolder: Sendable {
  enum Place: String, Sendable, CaseIterable {
    /// A file system of the disk.
    case disk = "/var/tmp"
    /// tmpfs, where no room can be inserted into a file.
    case memory = "/dev/shm"
  }

  let path: String

  init(_ place: Place = .disk) throws {
    var template = Array("\(place.rawValue)/weir-test-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw RecordingError("cannot make a folder in \(place.rawValue)") }
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit {
    // A catalogue that is being closed just then may write once more.
    for _ in 0..<100 {
      Self.removeContents(of: path)
      if rmdir(path) == 0 { return }
      sched_yield()
    }
  }

  private static func removeContents(of path: String) {
    guard let listing = opendir(path) else { return }
    var names: [String] = []
    while let entry = readdir(listing) {
      names.append(
        withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
    }
    closedir(listing)
    for name in names where name != "." && name != ".." {
      let path = "\(path)/\(name)"
      if unlink(path) != 0 {
        removeContents(of: path)
        rmdir(path)
      }
    }
  }

  /// Paths of the files below, relative, sorted.
  var files: [String] {
    guard let root = try? RecordingFolder.open(path), let names = try? root.names() else { return [] }
    return names.flatMap { name -> [String] in
      guard let stream = StreamName(name), let folder = try? root.folder(of: stream, ifAbsent: .fail) else {
        return [name]
      }
      return ((try? folder.names()) ?? []).map { "\(name)/\($0)" }
    }
  }

  /// What of it this process has open, by the kernel's names: those of removed files end with ` (deleted)`.
  var openFiles: [String] {
    guard let listing = opendir("/proc/self/fd") else { return [] }
    defer { closedir(listing) }
    var found: [String] = []
    while let entry = readdir(listing) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      var target = [UInt8](repeating: 0, count: 4096)
      let length = target.withUnsafeMutableBytes { room in
        room.baseAddress.map {
          readlink("/proc/self/fd/\(name)", $0.assumingMemoryBound(to: CChar.self), room.count)
        } ?? 0
      }
      guard length > 0 else { continue }
      let path = String(decoding: target.prefix(length), as: UTF8.self)
      if path.hasPrefix(self.path), path.contains(".mp4") { found.append(path) }
    }
    return found
  }

  /// Whether the file system is one that can insert room at the front of a file: ext4 or XFS.
  func canInsert() async throws -> Bool {
    ["ef53", "58465342"].contains(try await run("stat -f -c %t \(path)").filter { !$0.isWhitespace })
  }
}

/// A stream that is recorded: media events in, a file out.
final class RecordingHarness {
  let folder: TemporaryFolder
  let library: RecordingLibrary
  let events: RecordedEvents
  let stream: StreamName
  private var epoch: Epoch
  private(set) var recorder: Recorder

  /// 2026-11-21T07:24:10Z.
  static let start: WallTime = 1_795_245_850_000_000_000

  init(
    _ folder: TemporaryFolder, keepFree: Int64 = 0, stream: String = "cam",
    policy: RecordingPolicy = RecordingPolicy(), retention: RetentionSettings = RetentionSettings(),
    archive: RecordingArchive? = nil, calls: DiskCalls = .system, window: MediaTime? = nil,
    order: RecordingOrder? = nil, logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  ) throws {
    self.folder = folder
    self.stream = try #require(StreamName(stream))
    library = RecordingLibrary(
      folder: folder.path, keepFree: keepFree, policy: { _ in policy }, retention: retention, threads: .singleton,
      queues: RecordingQueues(writers: 1), archive: archive, calls: calls, logger: logger)
    events = RecordedEvents()
    library.observe(events)
    var settings = StreamSettings()
    if let window { settings.window = window }
    epoch = Epoch(id: "e", settings: settings)
    archive?.begin(epoch: "e", of: self.stream)
    recorder =
      if let order { library.makeSourceRecorder(self.stream, order) } else {
        try #require(library.makeRecorder(stream: self.stream, epoch: "e") as? Recorder)
      }
  }

  /// What is in memory of the stream.
  var window: LiveWindow { epoch.window }

  /// A second life of the stream's name.
  func renew() throws {
    epoch = Epoch(id: "f", settings: StreamSettings())
    recorder = try #require(library.makeRecorder(stream: stream, epoch: "f") as? Recorder)
  }

  func startPublication(_ tracks: [TrackDescription], wall: WallTime = RecordingHarness.start) throws {
    epoch.startPublication()
    try receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: wall)))
    try receive(.tracks(tracks))
  }

  func receive(_ event: MediaEvent) throws {
    for stored in try epoch.receive(event) { recorder.receive(stored) }
  }

  /// Closed captions were found in the publication.
  func find(_ services: CaptionServices, in track: TrackID = .video) { _ = epoch.note(services, of: track) }

  func send(_ samples: [Sample]) throws {
    for sample in samples { try receive(.sample(sample)) }
  }

  /// A frame came that could not be used.
  func lose(_ kind: MediaKind) { epoch.lost.count(kind) }

  /// The publisher's connection is lost; another publication may follow.
  func interrupt() throws {
    for stored in try epoch.interrupt() { recorder.receive(stored) }
  }

  func end(_ reason: EndReason = .finished) async throws {
    for stored in try epoch.end(reason) { recorder.receive(stored) }
    try await settle()
  }

  /// Keeps the only thread that writes busy until what is returned is called: a disk that does not answer.
  func freezeDisk() throws -> @Sendable () -> Void { try blockThread(of: library.queues.writers) }

  /// The same for what finishes files in the background.
  func freezeFinishing() throws -> @Sendable () -> Void { try blockThread(of: library.queues.finisher) }

  /// Finishes what an earlier run left, as the next start of the server does, and waits for the copies too.
  func finishLeftovers() async throws {
    await library.finishLeftovers()
    for _ in 0..<3000 where folder.files.contains(where: { $0.hasSuffix(".part.mp4") || $0.hasSuffix(".tmp") }) {
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Waits until nothing waits for the disk, and no copy is being made.
  func settle() async throws {
    for _ in 0..<3000 where !recorder.isIdle || library.isCopying { try await Task.sleep(for: .milliseconds(10)) }
    #expect(recorder.isIdle && !library.isCopying)
  }

  /// Two seconds of video and audio, from the publication's own time 0.
  func record(seconds: Int = 2, _ reason: EndReason = .finished) async throws {
    try startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try send(SyntheticMedia.interleaved(seconds: seconds))
    try await end(reason)
  }

  func removeFile(_ file: String) throws { try #require(unlink("\(folder.path)/\(file)") == 0) }

  func bytes(_ file: String) throws -> [UInt8] {
    let descriptor = open("\(folder.path)/\(file)", O_RDONLY)
    guard descriptor >= 0 else { throw RecordingError("no \(file)") }
    defer { close(descriptor) }
    var status = stat()
    fstat(descriptor, &status)
    var bytes = [UInt8](repeating: 0, count: Int(status.st_size))
    #expect(pread(descriptor, &bytes, bytes.count, 0) == bytes.count)
    return bytes
  }

  /// Sizes of the samples as the movie's tables tell them, one list a track.
  func sampleCounts(_ file: String) throws -> [Int] {
    let boxes = try #require(Box.parse(try bytes(file)))
    #expect(boxes.map(\.type) == ["ftyp", "moov", "free", "mdat"])
    return try boxes[1].all("trak").map { try #require($0.first("mdia/minf/stbl/stsz")).number(8) }
  }
}

extension [BodyPiece] {
  /// All of the bytes.
  func read() throws -> ByteBuffer {
    try reduce(into: ByteBuffer()) { all, piece in
      switch piece {
      case .bytes(let bytes): all.writeImmutableBuffer(bytes)
      case .file(let range):
        guard case .read(let bytes) = range.file.read(at: range.offset, count: range.length) else {
          throw RecordingError("the bytes move")
        }
        all.writeImmutableBuffer(bytes)
      }
    }
  }
}

extension RecordingPolicy {
  /// Files that cannot become large keep none, so that on tmpfs they are copied.
  static var withoutRoomInFront: RecordingPolicy {
    var policy = RecordingPolicy()
    policy.maximumBytes = UInt64(MoovReservation.unit) * 32 - 1
    return policy
  }
}

/// What was told of recordings.
final class RecordedEvents: RecordingObserver {
  private let events = Mutex<[RecordingEvent]>([])

  var all: [RecordingEvent] { events.withLock { $0 } }
  /// Without the mere progress.
  var steps: [RecordingEvent.Kind] { all.map(\.kind).filter { $0 != .progressed } }

  func receive(_ event: RecordingEvent) {
    events.withLock { $0.append(event) }
  }
}

/// Keeps a pool's only thread busy until what is returned is called.
func blockThread(of thread: any WorkThreads) throws -> @Sendable () -> Void {
  var ends: [CInt] = [0, 0]
  try #require(pipe(&ends) == 0)
  let (reading, writing) = (ends[0], ends[1])
  thread.submit { _ in
    var byte: UInt8 = 0
    _ = read(reading, &byte, 1)
    close(reading)
  }
  return { close(writing) }
}
