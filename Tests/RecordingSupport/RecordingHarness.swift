package import FMP4
internal import Glibc
package import Logging
internal import NIOPosix
package import Publishing
@testable package import Recording
package import RecordingFiles
@testable package import Streams
package import Support
internal import Testing

/// A stream that is recorded: media events in, a file out.
package final class RecordingHarness {
  package let folder: TemporaryFolder
  package let library: RecordingLibrary
  package let events: RecordedEvents
  package let stream: StreamName
  private var epoch: Epoch
  package private(set) var recorder: Recorder

  /// 2026-11-21T07:24:10Z.
  package static let start: WallTime = 1_795_245_850_000_000_000

  package init(
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
  package var window: LiveWindow { epoch.window }

  /// A second life of the stream's name.
  package func renew() throws {
    epoch = Epoch(id: "f", settings: StreamSettings())
    recorder = try #require(library.makeRecorder(stream: stream, epoch: "f") as? Recorder)
  }

  package func startPublication(_ tracks: [TrackDescription], wall: WallTime = RecordingHarness.start) throws {
    epoch.startPublication()
    try receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: wall)))
    try receive(.tracks(tracks))
  }

  package func receive(_ event: MediaEvent) throws {
    for stored in try epoch.receive(event) { recorder.receive(stored) }
  }

  /// Closed captions were found in the publication.
  package func find(_ services: CaptionServices, in track: TrackID = .video) { _ = epoch.note(services, of: track) }

  package func send(_ samples: [Sample]) throws {
    for sample in samples { try receive(.sample(sample)) }
  }

  /// A frame came that could not be used.
  package func lose(_ kind: MediaKind) { epoch.lost.count(kind) }

  /// The publisher's connection is lost; another publication may follow.
  package func interrupt() throws {
    for stored in try epoch.interrupt() { recorder.receive(stored) }
  }

  package func end(_ reason: EndReason = .finished) async throws {
    for stored in try epoch.end(reason) { recorder.receive(stored) }
    try await settle()
  }

  /// Keeps the only thread that writes busy until what is returned is called: a disk that does not answer.
  package func freezeDisk() throws -> @Sendable () -> Void { try blockThread(of: library.queues.writers) }

  /// The same for what finishes files in the background.
  package func freezeFinishing() throws -> @Sendable () -> Void { try blockThread(of: library.queues.finisher) }

  /// Finishes what an earlier run left, as the next start of the server does, and waits for the copies too.
  package func finishLeftovers() async throws {
    await library.finishLeftovers()
    for _ in 0..<3000 where folder.files.contains(where: { $0.hasSuffix(".part.mp4") || $0.hasSuffix(".tmp") }) {
      try await Task.sleep(for: .milliseconds(10))
    }
  }

  /// Waits until nothing waits for the disk, and no copy is being made.
  package func settle() async throws {
    for _ in 0..<3000 where !recorder.isIdle || library.isCopying { try await Task.sleep(for: .milliseconds(10)) }
    #expect(recorder.isIdle && !library.isCopying)
  }

  /// Two seconds of video and audio, from the publication's own time 0.
  package func record(seconds: Int = 2, _ reason: EndReason = .finished) async throws {
    try startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
    try send(SyntheticMedia.interleaved(seconds: seconds))
    try await end(reason)
  }

  package func removeFile(_ file: String) throws { try #require(unlink("\(folder.path)/\(file)") == 0) }

  package func bytes(_ file: String) throws -> [UInt8] {
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
  package func sampleCounts(_ file: String) throws -> [Int] {
    let boxes = try #require(Box.parse(try bytes(file)))
    #expect(boxes.map(\.type) == ["ftyp", "moov", "free", "mdat"])
    return try boxes[1].all("trak").map { try #require($0.first("mdia/minf/stbl/stsz")).number(8) }
  }
}
