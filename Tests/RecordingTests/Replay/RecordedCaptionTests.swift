import FMP4
import Glibc
import HTTP
import NIOCore
import Recording
import RecordingSupport
import Streams
import Support
import Testing

/// Playlists of recordings declare the closed captions that the stream declared.
@Suite struct RecordedCaptionTests {
  private static let name = "20261121T072410Z"
  private static let line = """
    #EXT-X-MEDIA:TYPE=CLOSED-CAPTIONS,GROUP-ID="captions",NAME="CC1",DEFAULT=NO,AUTOSELECT=YES,INSTREAM-ID="CC1"
    """
  private static let services: CaptionServices = {
    var services = CaptionServices()
    services.insert(.channel(1))
    return services
  }()

  private func text(_ source: ReplaySource, _ document: ReplayDocument) throws -> String {
    String(buffer: try #require(source.document(document, target: nil)).body)
  }

  private func expect(_ isDeclared: Bool, _ source: ReplaySource) throws {
    let playlist = try text(source, .multivariant(.separate, video: nil))
    #expect(playlist.contains(Self.line) == isDeclared, "\(playlist)")
    #expect(playlist.contains("CLOSED-CAPTIONS=\"captions\"") == isDeclared)
    let manifest = try text(source, .manifest)
    #expect(manifest.contains("urn:scte:dash:cc:cea-608:2015") == isDeclared, "\(manifest)")
    #expect(manifest.contains("CC1=und") == isDeclared)
  }

  private func begin(_ harness: RecordingHarness) throws {
    try harness.startPublication([try SyntheticMedia.video(), try SyntheticMedia.audio()])
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func `They are declared while it is written, when it is finished, and when it is opened again`(
    _ place: TemporaryFolder.Place
  ) async throws {
    let folder = try TemporaryFolder(place)
    let archive = RecordingArchive(folder: folder.path)
    let harness = try RecordingHarness(folder, archive: archive)
    try begin(harness)
    let media = SyntheticMedia.interleaved(seconds: 8, offset: 1000, isSteady: true)
    try harness.send(Array(media.prefix(media.count / 2)))
    try await harness.settle()
    let growing = try #require(try archive.open(harness.stream, Self.name))
    try expect(false, growing)
    // From then on.
    harness.find(Self.services)
    try harness.send(Array(media.dropFirst(media.count / 2)))
    try await harness.settle()
    try expect(true, growing)
    try await harness.end()
    try expect(true, growing)
    let opened = try #require(try RecordingArchive(folder: folder.path).open(harness.stream, Self.name))
    try expect(true, opened)
  }

  @Test func `A salvaged recording declares them`() async throws {
    let folder = try TemporaryFolder()
    let killed = try RecordingHarness(folder)
    try begin(killed)
    killed.find(Self.services)
    try killed.send(SyntheticMedia.interleaved(seconds: 5, offset: 1000, isSteady: true))
    try await killed.settle()
    let left = try killed.bytes("cam/\(Self.name).part.mp4")
    killed.recorder.cancel()
    try await killed.settle()
    let file = open("\(folder.path)/cam/\(Self.name).part.mp4", O_WRONLY | O_CREAT, 0o644)
    #expect(write(file, left, left.count) == left.count)
    close(file)
    let harness = try RecordingHarness(folder)
    try await harness.finishLeftovers()
    let opened = try #require(try RecordingArchive(folder: folder.path).open(harness.stream, Self.name))
    try expect(true, opened)
  }

  @Test func `A recording without captions declares none`() async throws {
    let folder = try TemporaryFolder()
    let harness = try RecordingHarness(folder)
    try begin(harness)
    try harness.send(SyntheticMedia.interleaved(seconds: 5, offset: 1000, isSteady: true))
    try await harness.end()
    try expect(false, try #require(try RecordingArchive(folder: folder.path).open(harness.stream, Self.name)))
  }
}
