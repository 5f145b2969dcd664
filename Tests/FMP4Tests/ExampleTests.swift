@testable import FMP4
import NIOCore
import Testing

@testable import FMP4Example

@Suite("The example of the library")
struct ExampleTests {
  /// What `picture` of the example is in a sample: its NAL unit behind its length.
  private let picture: [UInt8] =
    [0, 0, 0, 21, 0x65, 0x88, 0x80, 0x25, 0x13] + [UInt8](repeating: 0x93, count: 15) + [0xC0]

  @Test func `Its fragments hold each sample at its time`() throws {
    let film = try Film()
    var demuxer = FragmentDemuxer()
    var samples: [TrackID: [Sample]] = [:]
    for part in film.parts {
      demuxer.receive(part)
      while let event = try demuxer.next() {
        if case .sample(let sample) = event { samples[sample.track, default: []].append(sample) }
      }
    }
    try demuxer.end()
    #expect(demuxer.leftOut.isEmpty && demuxer.tracks.map(\.codec.codecString) == ["avc1.42C00A", "mp4a.40.2"])
    #expect(demuxer.tracks.first?.codec.displaySize?.width == 64)
    let (video, audio) = (samples[.video] ?? [], samples[.audio] ?? [])
    #expect(video.map(\.decodeTime) == Array(stride(from: Int64(0), to: 180_000, by: 3600)))
    #expect(video.filter(\.isSync).map(\.decodeTime) == [0, 90_000] && video.allSatisfy { $0.duration == 3600 })
    #expect(video.first.map { Array($0.payload.readableBytesView) } == picture)
    #expect(audio.map(\.decodeTime) == Array(stride(from: Int64(0), to: 94 * 1024, by: 1024)))
    #expect(audio.allSatisfy { Array($0.payload.readableBytesView) == [0x01, 0x18, 0x20, 0x07] })
    // Fragments of 200 ms behind the init segment.
    #expect(film.parts.count >= 11)
  }

  @Test func `Its movie is an ordinary one of the same samples`() throws {
    let film = try Film()
    let movie = try #require(BoxReader(film.movie).first { $0.type == "moov" })
    let (tracks, kind) = try MovieReader.read(movie)
    #expect(kind == .finished && tracks.map(\.id) == [.video, .audio])
    let summary = try MovieSummary(movie)
    #expect(summary.samples == 50 + 94 && abs(summary.seconds - 2) < 0.01)
    for (fraction, seconds) in [(0.1, 0.0), (0.9, 1.0)] {
      let frame = try MovieKeyFrame(in: movie, near: fraction)
      #expect(frame.seconds == seconds)
      #expect(film.movie.getBytes(at: Int(frame.offset), length: frame.length) == picture)
    }
  }
}
