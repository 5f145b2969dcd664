import Base
import FMP4
import HTTP
import Logging
import NIOCore
import NIOPosix
import Publishing
@testable import Recording
import RecordingFiles
import RecordingSupport
import Storage
@testable import Streams
import Support
import Testing

/// Recordings that are started, stopped and cancelled while their stream runs.
@Suite struct RecordingControlTests {
  private struct Scene {
    let folder: TemporaryFolder
    let library: RecordingLibrary
    let registry: StreamRegistry
    let events = RecordedEvents()
    let name: StreamName
    let archive: RecordingArchive
    let buffers: TimeShiftBuffers

    init(_ start: RecordingPolicy.Start = .manual, policy: RecordingPolicy? = nil, rewind: MediaTime? = nil) throws {
      folder = try TemporaryFolder()
      let archive = RecordingArchive(folder: folder.path, rewind: { _ in rewind })
      self.archive = archive
      let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      let library = RecordingLibrary(
        folder: folder.path, keepFree: 0, policy: { _ in policy ?? RecordingPolicy(start: start) }, threads: .singleton,
        queues: RecordingQueues(writers: 1), archive: archive, logger: logger)
      self.library = library
      registry = StreamRegistry(
        settings: { _ in
          var settings = StreamSettings()
          settings.rewind = rewind
          return settings
        }, clock: .system(), logger: logger
      ) { stream, epoch, requested, _ in
        guard requested == .asConfigured, let recorder = library.makeRecorder(stream: stream, epoch: epoch) else {
          return []
        }
        return rewind == nil ? [recorder] : [RewindRetention(stream: stream, epoch: epoch, archive: archive), recorder]
      }
      name = try #require(StreamName("cam"))
      buffers = TimeShiftBuffers(folder: folder.path, keepFree: 0, archive: archive, logger: logger)
      library.follow(registry, buffers: rewind == nil ? nil : buffers)
      library.observe(events)
    }

    func publish(_ recording: PublishRequest.RecordingMode = .asConfigured) async throws -> any MediaSink {
      let sink = try await registry.admit(
        PublishRequest(
          stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", recording: recording
        ) { _ in })
      _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: RecordingHarness.start)))
      _ = sink.receive(.tracks([try SyntheticMedia.video()]))
      return sink
    }

    func send(_ frames: Range<Int>, to sink: any MediaSink) {
      for index in frames { _ = sink.receive(.sample(SyntheticMedia.frame(index, group: 60))) }
    }

    /// Waits until the newest recording is what it should be.
    func wait(_ isThere: (RecordingState) -> Bool) async throws {
      for _ in 0..<1000 {
        if let state = library.state(of: name), isThere(state) { return }
        try await Task.sleep(for: .milliseconds(10))
      }
      Issue.record("\(library.state(of: name).debugDescription)")
    }
  }

  @Test func aRecordingBeginsWithTheNewestKeyFrameAndEndsWhenAsked() async throws {
    let scene = try Scene()
    let sink = try await scene.publish()
    scene.send(0..<200, to: sink)
    #expect(scene.library.state(of: scene.name) == nil, "nothing is recorded by itself")
    #expect(scene.library.start(scene.name) == .done)
    #expect(scene.library.start(scene.name) == .refused(.alreadyRecording))
    scene.send(200..<300, to: sink)
    #expect(scene.library.stop(scene.name) == .done)
    #expect(scene.library.stop(scene.name) == .refused(.notRecording))
    #expect(scene.library.cancel(scene.name) == .refused(.notRecording))
    scene.send(300..<400, to: sink)
    try await scene.wait { if case .completed = $0 { true } else { false } }
    // Frame 180 is the key frame before the start.
    #expect(scene.folder.files == ["cam/20261121T072416Z.mp4"])
    let stored = try #require(scene.events.all.last)
    #expect(scene.events.steps == [.started, .stopped(.asked), .stored])
    #expect(stored.facts.startedAt == RecordingHarness.start + 6_000_000_000)
    #expect(stored.facts.seconds > 3.5 && stored.facts.seconds <= 4)

    #expect(scene.library.start(scene.name) == .done, "and once more")
    scene.send(400..<500, to: sink)
    _ = sink.receive(.end(.finished))
    try await scene.wait { if case .completed = $0 { true } else { false } }
    #expect(scene.folder.files.count == 2)
    #expect(scene.library.stop(scene.name) == .refused(.notRecording))
  }

  @Test func aCancelledRecordingIsGoneAndTold() async throws {
    let scene = try Scene(.automatic)
    let sink = try await scene.publish()
    scene.send(0..<100, to: sink)
    try await scene.wait { if case .running = $0 { true } else { false } }
    #expect(scene.library.start(scene.name) == .refused(.alreadyRecording))
    #expect(scene.library.cancel(scene.name) == .done)
    scene.send(100..<200, to: sink)
    try await scene.wait { $0 == .cancelled }
    #expect(scene.folder.files.isEmpty)
    #expect(scene.events.steps == [.started, .cancelled])
  }

  /// A publisher that comes back does not undo a request of the API.
  @Test func whatWasStoppedStaysStoppedWhenThePublisherReturns() async throws {
    let scene = try Scene(.automatic)
    let sink = try await scene.publish()
    scene.send(0..<100, to: sink)
    #expect(scene.library.stop(scene.name) == .done)
    _ = sink.receive(.end(.connectionLost("gone")))
    let again = try await scene.publish()
    scene.send(0..<100, to: again)
    try await scene.wait { if case .completed = $0 { true } else { false } }
    #expect(scene.folder.files.count == 1)
    #expect(scene.events.steps == [.started, .stopped(.asked), .stored])
  }

  // MARK: Going back

  /// Which segments up to `number` cannot be gone back to. Recordings and the time-shift buffer are written on threads of their own.
  private func missing(upTo number: Int, in scene: Scene) async throws -> [Int] {
    let epoch = try #require(scene.registry.stream(scene.name)?.epoch.id)
    let programme = try #require(scene.archive.epoch(epoch))
    func missing() -> [Int] { (1...number).filter { programme.find($0) == nil } }
    for _ in 0..<1000 where !missing().isEmpty { try await Task.sleep(for: .milliseconds(10)) }
    return missing()
  }

  @Test func viewersCanGoBackToWhatCameWhileNothingWasRecorded() async throws {
    let scene = try Scene(.automatic, rewind: MediaTime(milliseconds: 3_600_000))
    let sink = try await scene.publish()
    // Segments of 60 frames; none of these calls comes at the end of one.
    scene.send(0..<200, to: sink)
    #expect(scene.library.stop(scene.name) == .done)
    scene.send(200..<500, to: sink)
    #expect(try await missing(upTo: 8, in: scene) == [])
    #expect(scene.library.start(scene.name) == .done)
    scene.send(500..<700, to: sink)
    // What is cancelled while it waits for the disk is not written.
    #expect(try await missing(upTo: 11, in: scene) == [])
    #expect(scene.library.cancel(scene.name) == .done)
    scene.send(700..<1000, to: sink)
    #expect(try await missing(upTo: 16, in: scene) == [])
    // Each segment's bytes are those that were in memory.
    let window = try #require(scene.registry.stream(scene.name)?.epoch.window)
    let epoch = try #require(scene.registry.stream(scene.name)?.epoch.id)
    let programme = try #require(scene.archive.epoch(epoch))
    for segment in window.segments where segment.isComplete {
      let (source, index) = try #require(programme.find(segment.sequenceNumber))
      let media = try #require(try source.pieces(ofSegment: index, .interleaved)).reduce(0) { $0 + $1.length }
      #expect(media == segment.memory.byteCount, "segment \(segment.sequenceNumber)")
    }
    let text = String(buffer: programme.playlist(.interleaved, window).body)
    #expect(!text.contains("GAP") && !text.contains("DISCONTINUITY") && text.contains("#EXT-X-MEDIA-SEQUENCE:1\n"))
    _ = sink.receive(.end(.finished))
  }

  /// The buffer that a recording replaces holds its file open until the disk has taken what it received.
  @Test func aBufferThatARecordingReplacesIsCountedUntilItIsClosed() async throws {
    let scene = try Scene(.automatic, rewind: MediaTime(milliseconds: 3_600_000))
    let sink = try await scene.publish()
    scene.send(0..<100, to: sink)
    #expect(scene.library.stop(scene.name) == .done)
    let stream = try #require(scene.registry.stream(scene.name))
    for _ in 0..<1000 where stream.countClosing() > 0 { try await Task.sleep(for: .milliseconds(10)) }
    let thaw = try blockThread(of: scene.buffers.threads)
    scene.send(100..<200, to: sink)
    #expect(scene.library.start(scene.name) == .done)
    #expect(stream.countClosing() == 1)
    thaw()
    for _ in 0..<1000 where stream.countClosing() > 0 { try await Task.sleep(for: .milliseconds(10)) }
    #expect(stream.countClosing() == 0)
    _ = sink.receive(.end(.finished))
  }

  @Test func viewersCanGoBackToWhatCameAfterTheLongestRecording() async throws {
    var policy = RecordingPolicy(start: .automatic)
    policy.maximumDuration = 5_000_000_000
    let scene = try Scene(policy: policy, rewind: MediaTime(milliseconds: 3_600_000))
    let sink = try await scene.publish()
    scene.send(0..<170, to: sink)
    try await scene.wait { if case .completed = $0 { true } else { false } }
    scene.send(170..<500, to: sink)
    #expect(try await missing(upTo: 8, in: scene) == [])
    _ = sink.receive(.end(.finished))
  }

  @Test func whatCannotBeRecordedIsRefusedWithTheReason() async throws {
    let scene = try Scene()
    #expect(scene.library.start(scene.name) == .refused(.notLive))
    #expect(scene.library.stop(scene.name) == .refused(.notLive))
    let sink = try await scene.publish(.never)
    scene.send(0..<100, to: sink)
    #expect(scene.library.start(scene.name) == .refused(.neverRecorded))
    #expect(scene.library.stop(scene.name) == .refused(.notRecording))
    _ = sink.receive(.end(.finished))
    #expect(scene.library.start(scene.name) == .refused(.notLive))
    #expect(RecordingRefusal.notLive.description.hasSuffix("."))
  }
}
