import Base
import FMP4
import Logging
import Publishing
@testable import Recording
import RecordingFiles
import RecordingSupport
@testable import Streams
import Support
import Testing

/// Recordings of video whose key frames are minutes apart.
@Suite struct EndlessGroupTests {
  private static let further = TrackID(.audio, 2)

  /// A key frame at 0 s and at 120 s; another audio from 1 s on.
  private static func samples(seconds: Range<Int>) -> [Sample] {
    SyntheticMedia.interleaved(seconds: 124, group: 3600).flatMap { sample -> [Sample] in
      let timescale: Int64 = sample.track == .video ? 30_000 : 48_000
      guard seconds.contains(Int(sample.decodeTime / timescale)) else { return [] }
      guard sample.track == .audio, sample.decodeTime >= 48_000 else { return [sample] }
      var further = sample
      further.track = Self.further
      return [sample, further]
    }
  }

  @Test func `A track that joins without a key frame does not stop the recording of the others`() async throws {
    let harness = try RecordingHarness(try TemporaryFolder())
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio()]
    try harness.startPublication(tracks)
    try harness.send(Self.samples(seconds: 0..<1))
    try harness.receive(.tracks(tracks + [try SyntheticMedia.audio(Self.further)]))
    try harness.send(Self.samples(seconds: 1..<110))
    try await harness.settle()
    #expect(harness.window.segments.last?.span(of: Self.further) != nil, "the track has joined the live stream")
    #expect(harness.recorder.warning == RecordingWait.changedTracks.description)
    guard case .running(let progress) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(progress.seconds > 109)

    // The key frame begins another file, with all tracks.
    try harness.send(Self.samples(seconds: 110..<124))
    try await harness.end()
    #expect(harness.recorder.warning == nil)
    #expect(harness.folder.files == ["cam/20261121T072410Z.mp4", "cam/20261121T072610Z.mp4"])
    let first = try harness.sampleCounts("cam/20261121T072410Z.mp4")
    let second = try harness.sampleCounts("cam/20261121T072610Z.mp4")
    #expect(first.count == 2 && second.count == 3)
    #expect(first[0] == 3600 && second[0] == 120)
    #expect(first[1] + second[1] == 124 * 48_000 / 1024)
    #expect(harness.events.all.allSatisfy { $0.facts.gaps.isEmpty })
  }

  /// What a recorder has that is attached in the middle of a group, and what was warned of then.
  private static func attach(
    _ order: RecordingOrder = RecordingOrder()
  ) async throws -> (warned: String?, files: [String], warning: String?) {
    let folder = try TemporaryFolder()
    let settings = RecordingSettings(
      folder: folder.path, keepFree: 0, clock: .system(),
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ).ordered(order)
    let stream = try #require(StreamName("cam"))
    let recorder = Recorder(stream: stream, epoch: "e", settings: settings, threads: WorkQueue("test"))
    var epoch = Epoch(id: "e", settings: StreamSettings())
    epoch.startPublication()
    var warned: String?
    let anchor = WallClockAnchor(mediaTime: .zero, wallTime: RecordingHarness.start)
    let media = SyntheticMedia.interleaved(seconds: 62, group: 1800)
    for event in [.clock(anchor), .tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()])]
      + media.map(MediaEvent.sample)
    {
      for stored in try epoch.receive(event) {
        if case .fragment(let fragment) = stored, fragment.fragment.start.seconds < 1 { continue }
        recorder.receive(stored)
        if case .fragment(let fragment) = stored, warned == nil, fragment.fragment.start.seconds > 30 {
          for _ in 0..<1000 where !recorder.isIdle { try await Task.sleep(for: .milliseconds(10)) }
          warned = recorder.warning ?? "nothing; files: \(folder.files)"
        }
      }
    }
    for _ in 0..<1000 where !recorder.isIdle { try await Task.sleep(for: .milliseconds(10)) }
    return (warned, folder.files, recorder.warning)
  }

  @Test func `A recording that waits for a key frame says so, and begins with it`() async throws {
    let (warned, files, warning) = try await Self.attach()
    #expect(warned == RecordingWait.everything.description)
    #expect(files == ["cam/20261121T072510Z.part.mp4"])
    #expect(warning == nil)
  }

  @Test func `A recording of audio alone waits for no key frame`() async throws {
    let (warned, files, _) = try await Self.attach(RecordingOrder(tracks: .kind(.audio)))
    let file = try #require(files.first)
    #expect(files.count == 1 && file < "cam/20261121T072425Z", "\(files)")
    #expect(warned == "nothing; files: \(files)")
  }
}
