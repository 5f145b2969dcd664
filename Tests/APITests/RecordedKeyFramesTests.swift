@testable import API
import Base
import FMP4
import Recording
import RecordingFiles
import RecordingSupport
import Support
import Testing

@Suite struct RecordedKeyFramesTests {
  @Test func keyFramesAreToldInTheMoviesTimeWithTheClockBesideThem() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    for wall in [RecordingHarness.start, RecordingHarness.start + 60_000_000_000] {
      if wall != RecordingHarness.start { try harness.interrupt() }
      try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()], wall: wall)
      try harness.send(SyntheticMedia.interleaved(seconds: 9, offset: 1000, isSteady: true))
    }
    try await harness.end()
    let archive = RecordingArchive(folder: folder.path)
    let opened = try #require(try archive.open(harness.stream, "20261121T072410Z"))
    let told = RecordedKeyFrames(opened.withIndex { copy $0 })
    let index = opened.withIndex { copy $0 }
    #expect(told.keyFrames.count == index.segments.count && told.keyFrames.first.map { $0 < 0.1 } == true)
    #expect(told.keyFrames == told.keyFrames.sorted())
    #expect(abs(told.seconds - 18) < 0.2)
    // The publisher was away for most of a minute, which the media knows nothing of.
    #expect(told.clock.count == 2)
    let (first, second) = (told.clock[0], told.clock[told.clock.count - 1])
    #expect(first.at < 0.1 && abs(second.at - 9) < 0.1)
    let (before, after) = try (
      #require(UTCText.read(first.time)), #require(UTCText.read(second.time))
    )
    #expect(abs(Double(after &- before) / 1e9 - 60) < 0.1)
  }
}
