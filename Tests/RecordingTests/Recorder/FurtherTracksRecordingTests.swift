import FMP4
import Glibc
import NIOCore
@testable import Recording
@testable import RecordingFiles
import RecordingSupport
import ServerSupport
import Storage
import Streams
import Support
import Testing

/// A recording holds all tracks of a stream, also where a run of the server was killed: judged by ffprobe and ffmpeg.
@Suite struct FurtherTracksRecordingTests {
  private static let stem = "20261121T072410Z"
  private static let source =
    "-f lavfi -i testsrc2=s=320x180:r=25:d=6 -f lavfi -i sine=r=48000:d=6 -f lavfi -i sine=880:r=44100:d=6"
    + " -f lavfi -i sine=220:r=48000:d=6 -map 0 -map 1 -map 2 -map 3 -c:v libx264 -g 25 -bf 2 -c:a:0 aac -c:a:1 aac"
    + " -c:a:2 libopus"

  private func record(_ folder: TemporaryFolder, archive: RecordingArchive? = nil) async throws -> (
    media: SourceMedia, harness: RecordingHarness
  ) {
    let media = try await SourceMedia.make(Self.source, in: folder)
    #expect(media.tracks.count == 4)
    let harness = try RecordingHarness(folder, archive: archive)
    try harness.startPublication(media.tracks)
    try harness.send(media.samples)
    return (media, harness)
  }

  /// That each track of a file has the samples that were sent, from the first on, with their times and sizes. Returns how many
  /// each has.
  private func judge(_ file: String, _ media: SourceMedia) async throws -> [Int] {
    let text = try await run(
      "ffprobe -v error -show_entries packet=stream_index,pts_time,dts_time,size -of csv=p=0 \(file) 2>&1")
    var found: [[(pts: Double, dts: Double, size: Int)]] = Array(repeating: [], count: media.tracks.count)
    for line in text.split(separator: "\n") {
      let fields = line.split(separator: ",", omittingEmptySubsequences: false)
      let numbers = fields.prefix(4).compactMap { Double($0) }
      try #require(numbers.count == 4 && found.indices.contains(Int(numbers[0])), "\(line)")
      found[Int(numbers[0])].append((numbers[1], numbers[2], Int(numbers[3])))
    }
    let origin = try #require(media.origin)
    for (index, track) in media.tracks.enumerated() {
      let sent = media.samples.filter { $0.track == track.id }
      #expect(found[index].count <= sent.count)
      for (found, sent) in zip(found[index], sent) {
        let dts = Double(sent.decodeTime) / Double(track.timescale) - origin
        let pts = dts + Double(sent.compositionOffset) / Double(track.timescale)
        #expect(
          abs(found.pts - pts) < 0.0005 && abs(found.dts - dts) < 0.0005 && found.size == sent.payload.readableBytes,
          "track \(track.id.rawValue): \(found), sent \(pts) \(dts)")
      }
    }
    let decoded = try await run("ffmpeg -v error -i \(file) -map 0 -f null - 2>&1; echo exit $?")
    #expect(decoded == "exit 0\n")
    return found.map(\.count)
  }

  @Test(arguments: TemporaryFolder.Place.allCases)
  func allOfThemAreInTheFinishedMovie(_ place: TemporaryFolder.Place) async throws {
    let folder = try TemporaryFolder(place)
    let (media, harness) = try await record(folder)
    try await harness.end()
    let file = "cam/\(Self.stem).mp4"
    let bytes = try harness.bytes(file)
    #expect(Box.parse(bytes)?.map(\.type) == ["ftyp", "moov", "free", "mdat"])
    let counts = try await judge("\(folder.path)/\(file)", media)
    #expect(counts == media.tracks.map { track in media.samples.count { $0.track == track.id } })
    let streams = try await run(
      "ffprobe -v error -show_entries stream=codec_name,duration -of csv=p=0 \(folder.path)/\(file)")
    let lines = streams.split(separator: "\n").map { $0.split(separator: ",") }
    #expect(lines.map { $0.first } == ["h264", "aac", "aac", "opus"])
    for line in lines { #expect(abs((line.last.flatMap { Double($0) } ?? 0) - 6) < 0.1) }
    let codecs = try RecordingFolder.open(folder.path).folder(of: harness.stream, ifAbsent: .fail)
      .contents(of: "\(Self.stem).mp4").codecs
    #expect(codecs.count == 4 && codecs == harness.events.all.last?.facts.codecs)
  }

  /// A kill leaves so much of the file: it plays as it is, and once the next run has finished it.
  @Test func everyPrefixPlaysAsItIsAndFinished() async throws {
    let folder = try TemporaryFolder()
    let (media, harness) = try await record(folder)
    try await harness.settle()
    let bytes = try harness.bytes("cam/\(Self.stem).part.mp4")
    let start = try #require(Box.parse(bytes)?.first { $0.type == "moof" }).offset
    let length = try #require(Box.parse(bytes)?.last { $0.type == "mdat" }).offset
    for eighth in 2...8 {
      let cut = start + (length - start) * eighth / 8
      let killed = try TemporaryFolder()
      let path = "\(killed.path)/cam/\(Self.stem)"
      mkdir("\(killed.path)/cam", 0o755)
      let descriptor = open("\(path).part.mp4", O_WRONLY | O_CREAT, 0o644)
      #expect(pwrite(descriptor, bytes, cut, 0) == cut)
      close(descriptor)
      let played = try await run(
        "ffprobe -v error -count_packets -show_entries stream=nb_read_packets -of csv=p=0 \(path).part.mp4 2>/dev/null")
      let packets = played.split(separator: "\n").compactMap { Int($0) }
      #expect(packets.count == 4 && packets.allSatisfy { $0 > 0 }, "\(eighth): \(played)")
      try await RecordingHarness(killed).finishLeftovers()
      let counts = try await judge("\(path).mp4", media)
      #expect(zip(counts, packets).allSatisfy { abs($0 - $1) <= 16 }, "\(eighth): \(counts), as it was \(packets)")
    }
  }

  @Test func replayAndClipsGiveTheFirstOfEachKind() async throws {
    let folder = try TemporaryFolder()
    let archive = RecordingArchive(folder: folder.path, rewind: { _ in MediaTime(milliseconds: 3_600_000) })
    let (_, harness) = try await record(folder, archive: archive)
    try await harness.settle()
    let window = harness.window
    let growing = try #require(archive.epoch("e"))
    try await harness.end()
    let opened = try #require(try RecordingArchive(folder: folder.path).open(harness.stream, Self.stem))
    var compared = 0
    for segment in window.segments where segment.isComplete {
      guard let (source, index) = growing.find(segment.sequenceNumber) else { continue }
      for rendition in Rendition.allCases {
        let layout = try #require(window.layout(rendition, of: segment))
        let live = try segment.pieces(of: layout.trackID).read()
        #expect(try source.pieces(ofSegment: index, rendition)?.read() == live)
        #expect(try opened.pieces(ofSegment: index, rendition)?.read() == live)
        compared += 1
      }
    }
    #expect(compared >= 6)
    #expect(opened.initSegment(1, .interleaved) == window.inits[1]?.interleaved)

    let metadata = MovieMetadata(title: "", date: "", tool: "", creation: 0)
    let clip = try opened.clip(
      from: .media(MediaTime(milliseconds: 1000)), to: .media(MediaTime(milliseconds: 3000)), metadata: metadata)
    let path = "\(folder.path)/clip.mp4"
    let bytes = Array(try [BodyPiece.bytes(clip.movieHeader), .file(clip.media)].read().readableBytesView)
    let descriptor = open(path, O_WRONLY | O_CREAT, 0o644)
    #expect(write(descriptor, bytes, bytes.count) == bytes.count)
    close(descriptor)
    let streams = try await run("ffprobe -v error -show_entries stream=codec_name -of csv=p=0 \(path)")
    #expect(streams == "h264\naac\n")
    #expect(try await run("ffmpeg -v error -i \(path) -map 0 -f null - 2>&1; echo exit $?") == "exit 0\n")
  }
}
