import FMP4
import NIOCore

/// Two seconds of a grey picture and of silence: samples in, fragments and a movie out.
struct Film {
  /// The init segment and then the fragments, as they are sent while they come into being.
  private(set) var parts: [ByteBuffer] = []
  /// All of them as an ordinary MP4, which begins with its sample tables.
  private(set) var movie = ByteBuffer()

  init() throws {
    // What encoders state once: parameter sets with start codes, and an AudioSpecificConfig. Access units follow.
    let parameterSets = try ByteBuffer(plainHexEncodedBytes: "00000001 6742c00a99a10990 00000001 68ce3c80")
    let picture = try ByteBuffer(plainHexEncodedBytes: "00000001 6588802513939393939393939393939393939393c0")
    let silence = try ByteBuffer(plainHexEncodedBytes: "01182007")
    let video = TrackDescription(
      id: .video, codec: try Codec(.h264, stream: parameterSets), timescale: 90_000, frameDuration: 3600)
    let audio = TrackDescription(
      id: .audio, codec: try Codec(.aac, record: ByteBuffer(bytes: [0x11, 0x88])), timescale: 48_000)

    var segmenter = Segmenter(policy: CutPolicy(segmentTarget: MediaTime(milliseconds: 1000)))
    var tables = MovieTables(tracks: [video, audio])
    write(segmenter.receive(.tracks([video, audio])), &tables)
    var sounds = 0
    for number in 0..<50 {
      // A key frame each second. The others show the picture before them once more.
      let repeated = ByteBuffer(bytes: [0, 0, 0, 1, 0x41, 0x9A, UInt8(number % 25), 0x14, 0x11, 0x80])
      if let frame = try video.codec.accessUnit(stream: number % 25 == 0 ? picture : repeated) {
        let sample = Sample(
          track: video.id, decodeTime: Int64(number) * 3600, duration: 3600, isSync: frame.isSync,
          isDisposable: frame.isDisposable, payload: frame.payload)
        write(segmenter.receive(.sample(sample)), &tables)
      }
      while sounds * 1024 * 25 < (number + 1) * 48_000 {
        let sample = Sample(
          track: audio.id, decodeTime: Int64(sounds) * 1024, duration: 1024, isSync: true, payload: silence)
        write(segmenter.receive(.sample(sample)), &tables)
        sounds += 1
      }
    }
    write(segmenter.receive(.end(.finished)), &tables)

    // The fragmented file as it is becomes the media of the movie.
    let metadata = MovieMetadata(title: "Grey", date: "2026-11-21", tool: "FMP4Example", creation: .zero)
    guard let builder = MovieBuilder(tables, metadata: metadata) else { return }
    movie = builder.movieHeader(contentLength: UInt64(byteCount), blockSize: 1)
    for part in parts { movie.writeImmutableBuffer(part) }
  }

  private var byteCount: Int { parts.reduce(0) { $0 + $1.readableBytes } }

  private mutating func write(_ events: [FragmentEvent], _ tables: inout MovieTables) {
    for event in events {
      switch event {
      case .initialization(let segment): parts.append(segment.whole)
      case .fragment(let fragment):
        var part = FragmentBoxes.interleavedHead(of: fragment)
        tables.append(fragment.runs, mediaOffset: UInt64(byteCount + part.readableBytes))
        for payload in fragment.payloads { part.writeImmutableBuffer(payload) }
        parts.append(part)
      case .segmentEnd, .discontinuity, .clock, .groupOfPictures, .end: break
      }
    }
  }
}
