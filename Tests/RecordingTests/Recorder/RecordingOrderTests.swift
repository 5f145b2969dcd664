import Base
import FMP4
import Glibc
import Logging
import NIOCore
import Publishing
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import Support
import Testing

/// What a request for one recording asks for: its name, tracks and limits.
@Suite struct RecordingOrderTests {
  @Test func aNameHasAFileNameOfItsSafeCharacters() throws {
    let longest = String(repeating: "a", count: RecordingTitle.maximumBytes)
    #expect(try RecordingTitle(longest).fileName == longest)
    #expect(throws: ValueError.self) { try RecordingTitle(longest + "a") }
    #expect(try RecordingTitle("..Ein Gespräch: Teil 2!").fileName == "Ein-Gespr-ch-Teil-2")
    #expect(try RecordingTitle("приём").fileName == nil)
    #expect(try RecordingTitle("a ä").percentEncoded == "a%20%C3%A4")
    let stream = try #require(StreamName("cam"))
    let naming = try #require(RecordingNaming(try RecordingTitle("On 20250101T000000Z")))
    let name = try #require(naming.name(stream: stream, start: UTCText(RecordingHarness.start)))
    #expect(name.finished == "On-20250101T000000Z_20261121T072410Z.mp4" && name.start == "20261121T072410Z")
    let note = try RecordingTitle("приём").note
    #expect(RecordingTitle(note: note) == (try RecordingTitle("приём")))
    #expect(RecordingTitle(note: ByteBuffer(string: "gap1")) == nil)
  }

  @Test func theLowerLimitHolds() {
    let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    var settings = RecordingSettings(folder: "", keepFree: 0, clock: .system(), logger: logger)
    settings.policy.maximumDuration = 10
    let higher = settings.ordered(RecordingOrder(maximumDuration: 20, maximumBytes: 5))
    #expect(higher.policy.maximumDuration == 10 && higher.policy.maximumBytes == 5)
    #expect(settings.ordered(RecordingOrder(maximumDuration: 5)).policy.maximumDuration == 5)
  }

  // MARK: Files

  private static func record(
    _ choice: TrackChoice, title: String? = nil, _ folder: TemporaryFolder, isLeft: Bool = false
  ) async throws -> RecordingHarness {
    let order = RecordingOrder(title: try title.map { text in try RecordingTitle(text) }, tracks: choice)
    let harness = try RecordingHarness(folder, order: order)
    let tracks = [try SyntheticMedia.video(), try SyntheticMedia.audio(), try SyntheticMedia.audio(TrackID(.audio, 2))]
    try harness.startPublication(tracks)
    try harness.send(SyntheticMedia.interleaved(seconds: 5, furtherAudios: [TrackID(.audio, 2)]))
    if !isLeft { try await harness.end() }
    return harness
  }

  @Test(
    arguments: [
      (TrackChoice.kind(.audio), ["mp4a.40.2", "mp4a.40.2"]), (.kind(.video), ["avc1.64000D"]),
      (.numbers([TrackID(.audio, 2)]), ["mp4a.40.2"]), (.all, ["avc1.64000D", "mp4a.40.2", "mp4a.40.2"]),
    ], TemporaryFolder.Place.allCases)
  func theMovieHasTheChosenTracksAlone(
    _ choice: (tracks: TrackChoice, codecs: [String]), _ place: TemporaryFolder.Place
  ) async throws {
    let folder = try TemporaryFolder(place)
    let harness = try await Self.record(choice.tracks, title: "Take 1", folder)
    let stored = try #require(harness.events.all.last)
    #expect(stored.kind == .stored && stored.facts.gaps.isEmpty)
    #expect(stored.facts.codecs == choice.codecs && abs(stored.facts.seconds - 5) < 0.1)
    #expect(folder.files == ["cam/Take-1_20261121T072410Z.mp4"])
    let contents = try RecordingFolder.open("\(folder.path)/cam").contents(of: "Take-1_20261121T072410Z.mp4")
    #expect(contents.codecs == choice.codecs && contents.metadata?.title == "Take 1")
    let samples = try await run(
      "ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 "
        + "\(folder.path)/cam/Take-1_20261121T072410Z.mp4")
    let counts = samples.split(whereSeparator: \.isNewline).compactMap { Int($0.filter(\.isNumber)) }
    #expect(counts.count == choice.codecs.count && counts.allSatisfy { $0 >= 149 }, "\(samples)")
  }

  @Test func aSalvagedRecordingKeepsItsNameAndItsTracks() async throws {
    let folder = try TemporaryFolder()
    let killed = try await Self.record(.kind(.audio), title: "приём", folder, isLeft: true)
    try await killed.settle()
    let left = try killed.bytes("cam/20261121T072410Z.part.mp4")
    killed.recorder.cancel()
    try await killed.settle()
    let file = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count) == left.count)
    close(file)
    await killed.library.finishLeftovers()
    let contents = try RecordingFolder.open("\(folder.path)/cam").contents(of: "20261121T072410Z.mp4")
    #expect(contents.metadata?.title == "приём" && contents.metadata?.isSalvaged == true)
    #expect(contents.codecs == ["mp4a.40.2", "mp4a.40.2"])
  }

  @Test func tracksThatAreNotThereAreSaid() async throws {
    let folder = try TemporaryFolder()
    let harness = try await Self.record(.numbers([TrackID(9)]), folder)
    #expect(folder.files.isEmpty)
    guard case .failed(nil, let reason) = harness.recorder.state else {
      Issue.record("\(harness.recorder.state)")
      return
    }
    #expect(reason == "the stream has none of the chosen tracks")
  }
}
