@testable import FMP4
import Glibc
import NIOCore
import Recording
import RecordingSupport
import Support
import Testing

/// Recordings of what real encoders made, judged by ffprobe and ffmpeg.
@Suite struct RecordedMediaTests {
  enum Source: String, Sendable, CaseIterable {
    case h264WithBFrames =
      "-f lavfi -i testsrc2=s=320x180:r=30000/1001:d=5 -f lavfi -i sine=r=48000:d=5 -c:v libx264 -g 60 -bf 2 -c:a aac"
    case opusAndHEVC =
      "-f lavfi -i testsrc2=s=320x180:r=25:d=4 -f lavfi -i sine=r=48000:d=4 -c:v libx265 -preset ultrafast -tag:v hvc1 -c:a libopus"
    case videoOnly = "-f lavfi -i testsrc2=s=320x180:r=24:d=3 -c:v libx264 -g 48 -pix_fmt yuv420p"
    case audioOnly = "-f lavfi -i sine=r=44100:d=3 -c:a aac"
  }

  struct Packet: Equatable, CustomStringConvertible {
    var kind: String
    var pts: Double
    var dts: Double
    var size: Int
    var isKey: Bool
    var description: String { "\(kind) \(pts) \(dts) \(size)\(isKey ? " K" : "")" }
  }

  @Test(arguments: Source.allCases, TemporaryFolder.Place.allCases)
  func aRecordingHoldsEveryFrameAtItsTimeAndDecodesWithoutErrors(
    _ source: Source, _ place: TemporaryFolder.Place
  ) async throws {
    let folder = try TemporaryFolder(place)
    let media = try await SourceMedia.make(source.rawValue, in: folder)
    let harness = try RecordingHarness(folder)
    try harness.startPublication(media.tracks)
    try harness.send(media.samples)
    try await harness.end()
    let file = "\(folder.path)/cam/20261121T072410Z.mp4"

    let recorded = try await packets(file)
    let origin = try #require(media.origin)
    for track in media.tracks {
      let kind = track.kind.rawValue
      let expected = media.samples.filter { $0.track == track.id }.map { sample in
        Packet(
          kind: kind,
          pts: seconds(sample.decodeTime + Int64(sample.compositionOffset), track) - origin,
          dts: seconds(sample.decodeTime, track) - origin, size: sample.payload.readableBytes, isKey: sample.isSync)
      }
      let found = recorded.filter { $0.kind == kind }
      #expect(found.count == expected.count)
      for (a, b) in zip(found, expected) {
        #expect(
          abs(a.pts - b.pts) < 0.0005 && abs(a.dts - b.dts) < 0.0005 && a.size == b.size && a.isKey == b.isKey,
          "recorded \(a), sent \(b)")
      }
    }
    let decoded = try await run("ffmpeg -v error -i \(file) -f null - 2>&1; echo exit $?")
    #expect(decoded == "exit 0\n")
    let title = try await run("ffprobe -v error -show_entries format_tags=title,date,encoder -of csv=p=0 \(file)")
    #expect(title.contains("cam") && title.contains("2026-11-21T07:24:10"))
  }

  @Test func everyKeyFrameCanBeSoughtTo() async throws {
    let folder = try TemporaryFolder()
    let media = try await SourceMedia.make(Source.h264WithBFrames.rawValue, in: folder)
    let harness = try RecordingHarness(folder)
    try harness.startPublication(media.tracks)
    try harness.send(media.samples)
    try await harness.end()
    let file = "\(folder.path)/cam/20261121T072410Z.mp4"
    let keys = try await packets(file).filter { $0.kind == "video" && $0.isKey }.map(\.pts)
    #expect(keys.count == 3)
    for key in keys {
      let first = try await run(
        "ffprobe -v error -read_intervals \(key)%+#1 -select_streams v -show_entries packet=pts_time,flags -of csv=p=0 \(file)"
      )
      #expect(
        first.split(separator: ",").first.flatMap { Double($0) }.map { abs($0 - key) < 0.001 } == true, "\(first)")
    }
  }

  /// Six gigabytes of nothing between the init segment and the fragments, in a sparse file.
  @Test func mediaBeyondFourGibibytesIsFound() async throws {
    let folder = try TemporaryFolder(.disk)
    try #require(try await folder.canInsert(), "the file system of /var/tmp cannot insert room, so this would copy")
    let media = try await SourceMedia.make(Source.videoOnly.rawValue, in: folder)
    let harness = try RecordingHarness(folder)
    try harness.startPublication(media.tracks)
    try harness.send(media.samples)
    try harness.interrupt()
    try await harness.settle()
    let bytes = try harness.bytes("cam/20261121T072410Z.part.mp4")
    harness.recorder.cancel()
    try await harness.settle()

    let beginning = try #require(Box.parse(bytes)?.first { $0.type == "free" }).offset
    let hole = 3 << 30
    let header: [UInt8] = [0xC0, 0, 0, 0] + Array("free".utf8)
    let descriptor = open("\(folder.path)/cam/20261121T072410Z.part.mp4", O_WRONLY | O_CREAT, 0o644)
    for (part, offset) in [
      (Array(bytes[..<beginning]), 0), (header, beginning), (header, beginning + hole),
      (Array(bytes[beginning...]), beginning + 2 * hole),
    ] {
      #expect(pwrite(descriptor, part, part.count, off_t(offset)) == part.count)
    }
    close(descriptor)
    try await harness.finishLeftovers()
    let file = "\(folder.path)/cam/20261121T072410Z.mp4"
    let decoded = try await run(
      "ffprobe -v error -count_frames -show_entries stream=nb_read_frames -of csv=p=0 \(file) 2>&1")
    #expect(decoded.split(separator: "\n").first == "\(media.samples.count)")
  }

  private func seconds(_ ticks: Int64, _ track: TrackDescription) -> Double {
    Double(ticks) / Double(track.timescale)
  }

  /// What a demuxer that shares nothing with weir finds.
  private func packets(_ file: String) async throws -> [Packet] {
    // Edits trim audio within a packet; with the lists ignored its packets tell their own times.
    let text = try await run(
      "ffprobe -v error -show_entries packet=codec_type,pts_time,dts_time,size,flags -of csv=p=0 \(file)")
    return text.split(separator: "\n").compactMap { line in
      let fields = line.split(separator: ",", omittingEmptySubsequences: false)
      guard fields.count >= 5, let pts = Double(fields[1]), let dts = Double(fields[2]), let size = Int(fields[3])
      else { return nil }
      return Packet(
        kind: String(fields[0]), pts: pts, dts: dts, size: size, isKey: fields[4].contains("K"))
    }
  }
}

/// Samples that ffmpeg encoded, out of a fragmented file of its own.
struct SourceMedia {
  var tracks: [TrackDescription]
  /// In order of decode time.
  var samples: [Sample]

  /// Presentation time in seconds at which the recording begins: that of the first frame, else of the first audio.
  var origin: Double? {
    guard let leader = tracks.first(where: { $0.kind == .video }) ?? tracks.first else { return nil }
    let times = samples.filter { $0.track == leader.id }.map { $0.decodeTime + Int64($0.compositionOffset) }
    return times.min().map { Double($0) / Double(leader.timescale) }
  }

  /// Encoded once for all tests that want the same.
  static func make(_ arguments: String, in folder: TemporaryFolder) async throws -> SourceMedia {
    try await Made.shared.media(arguments) { try await encode(arguments, in: folder) }
  }

  private actor Made {
    static let shared = Made()
    private var media: [String: Task<SourceMedia, any Error>] = [:]

    func media(_ name: String, _ make: @escaping @Sendable () async throws -> SourceMedia) async throws -> SourceMedia {
      let task = media[name] ?? Task { try await make() }
      media[name] = task
      return try await task.value
    }
  }

  private static func encode(_ arguments: String, in folder: TemporaryFolder) async throws -> SourceMedia {
    let path = "\(folder.path)/source.mp4"
    let flags = "-movflags +empty_moov+default_base_moof+frag_keyframe"
    let said = try await run("ffmpeg -v error -y \(arguments) -pix_fmt yuv420p \(flags) \(path) 2>&1; echo exit $?")
    #expect(said.hasSuffix("exit 0\n"), "\(said)")
    let descriptor = open(path, O_RDONLY)
    defer {
      close(descriptor)
      unlink(path)
    }
    var status = stat()
    fstat(descriptor, &status)
    var bytes = ByteBuffer()
    bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: Int(status.st_size)) {
      max(0, pread(descriptor, $0.baseAddress, Int(status.st_size), 0))
    }
    return try parse(bytes)
  }

  private static func parse(_ file: ByteBuffer) throws -> SourceMedia {
    let tracks = try MovieReader.read(try #require(BoxReader(file).first { $0.type == "moov" })).tracks
    let timescales = Dictionary(uniqueKeysWithValues: tracks.map { ($0.id, $0.timescale) })
    var samples: [(time: MediaTime, sample: Sample)] = []
    for box in BoxReader(file) where box.type == "moof" {
      for located in try FragmentReader.read(box, timescales: timescales) {
        var offset = Int(box.header.range.lowerBound) + located.offset
        var time = located.run.baseDecodeTime
        for sample in located.run.samples {
          let payload = try #require(file.getSlice(at: offset, length: Int(sample.size)))
          let isAudio = tracks.first { $0.id == located.run.track }?.kind == .audio
          samples.append(
            (
              MediaTime(ticks: time, timescale: located.run.timescale),
              Sample(
                track: located.run.track, decodeTime: time, compositionOffset: sample.compositionOffset,
                duration: isAudio ? sample.duration : nil, isSync: sample.isSync, payload: payload)
            ))
          offset += Int(sample.size)
          time += Int64(sample.duration)
        }
      }
    }
    return SourceMedia(tracks: tracks, samples: samples.sorted { $0.time < $1.time }.map(\.sample))
  }
}
