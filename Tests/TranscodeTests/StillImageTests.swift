import CLibAV
import FMP4
import IngestSupport
import LibAV
@testable import Local
import NIOCore
import Support
import Testing
@testable import Transcode

@Suite struct StillImageTests {
  /// A key frame of the test pattern and its track.
  static func keyFrame(width: Int = 320, height: Int = 180) throws -> (Sample, TrackDescription) {
    let media = try TestMedia(settings: TestSourceSettings(width: width, height: height), wallStart: 0)
    var events: [MediaEvent] = []
    try media.advance(to: 0) { events.append($0) }
    try media.finish { events.append($0) }
    var found: (Sample?, TrackDescription?) = (nil, nil)
    for event in events {
      switch event {
      case .tracks(let tracks): found.1 = tracks.first { $0.kind == .video }
      case .sample(let sample) where sample.track == .video && sample.isSync: found.0 = found.0 ?? sample
      default: break
      }
    }
    return (try #require(found.0), try #require(found.1))
  }

  private func jpeg(of sample: ByteBuffer, track: TrackDescription) throws -> ByteBuffer {
    try StillImage.jpeg(of: try StillImageRequest(of: sample, track: track))
  }

  /// Width, height and luma of a JPEG, by a decoder of its own.
  private func decoded(_ jpeg: ByteBuffer) throws -> (width: Int, height: Int, luma: [[UInt8]]) {
    let decoder = try LibAVDecoder(AV_CODEC_ID_MJPEG, extradata: [])
    var result: (width: Int, height: Int, luma: [[UInt8]]) = (0, 0, [])
    try decoder.decode((0, jpeg)) { _, frame in
      let (width, height) = (Int(frame.width), Int(frame.height))
      guard let data = frame.data.0 else { return }
      let lines = (0..<height).map { row in
        (0..<width).map { data[row * Int(frame.linesize.0) + $0] }
      }
      result = (width, height, lines)
    }
    return result
  }

  @Test func aKeyFrameBecomesAJPEGOfItsShape() throws {
    let (sample, track) = try Self.keyFrame(width: 1280, height: 720)
    let jpeg = try self.jpeg(of: sample.payload, track: track)
    #expect(Array(jpeg.readableBytesView.prefix(3)) == [0xFF, 0xD8, 0xFF])
    #expect(Array(jpeg.readableBytesView.suffix(2)) == [0xFF, 0xD9])
    let frame = try decoded(jpeg)
    #expect(frame.width == 640)
    #expect(frame.height == 360)
    // The pattern has bright and dark places.
    let values = frame.luma.flatMap { $0 }
    #expect(try #require(values.max()) > 180)
    #expect(try #require(values.min()) < 40)
  }

  @Test(
    arguments: [
      ((1920, 1080), (640, 360)), ((1080, 1920), (360, 640)), ((320, 180), (320, 180)), ((641, 361), (640, 360)),
      ((16_384, 2), (640, 2)), ((1, 1), (2, 2)), ((640, 640), (640, 640)), ((639, 357), (640, 358)),
    ] as [((Int, Int), (Int, Int))])
  func framesAreFittedIntoTheLimitInEvenNumbers(_ size: (Int, Int), _ expected: (Int, Int)) {
    let fitting = StillImage.fitting((size.0, size.1))
    #expect(fitting.width == expected.0)
    #expect(fitting.height == expected.1)
  }

  @Test func framesAreTurnedAsTheirTrackSays() throws {
    let (sample, upright) = try Self.keyFrame()
    let reference = try decoded(try jpeg(of: sample.payload, track: upright))
    for rotation in Rotation.allCases {
      var track = upright
      track.rotation = rotation
      let turned = try decoded(try jpeg(of: sample.payload, track: track))
      let isOnItsSide = rotation.swapsSides
      #expect(turned.width == (isOnItsSide ? reference.height : reference.width))
      #expect(turned.height == (isOnItsSide ? reference.width : reference.height))
      var difference = 0
      for row in stride(from: 0, to: reference.height, by: 7) {
        for column in stride(from: 0, to: reference.width, by: 7) {
          let across = rotation.isMirrored ? reference.width - 1 - column : column
          let there: UInt8 =
            switch rotation.degrees {
            case 90: turned.luma[across][reference.height - 1 - row]
            case 180: turned.luma[reference.height - 1 - row][reference.width - 1 - across]
            case 270: turned.luma[reference.width - 1 - across][row]
            default: turned.luma[row][across]
            }
          if abs(Int(there) - Int(reference.luma[row][column])) > 40 { difference += 1 }
        }
      }
      #expect(difference * 50 < reference.height * reference.width / 49, "\(rotation)")
    }
  }

  @Test func bitsThatAreNoFrameAreRefused() throws {
    let (sample, track) = try Self.keyFrame()
    var noise = SystemRandomNumberGenerator()
    let size = sample.payload.readableBytes
    let random = ByteBuffer(bytes: (0..<size).map { _ in UInt8.random(in: 0...255, using: &noise) })
    for bytes in [ByteBuffer(), ByteBuffer(bytes: [0, 0, 0, 1, 0x65]), random] {
      #expect(throws: LibAVError.self) { try jpeg(of: bytes, track: track) }
    }
    let audio = TrackDescription(
      id: .audio, codec: Codec(try Opus.Configuration(channels: 2, preSkip: 0)), timescale: 48_000)
    #expect(throws: StillImageError.self) { try jpeg(of: sample.payload, track: audio) }
  }

  @Test func damagedFramesHarmNothing() throws {
    let (sample, track) = try Self.keyFrame()
    var random = SystemRandomNumberGenerator()
    for _ in 0..<20 {
      var bytes = Array(sample.payload.readableBytesView)
      for _ in 0..<20 {
        bytes[Int.random(in: 5..<bytes.count, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
      }
      // A frame with faults or none: both are lawful, as long as it comes back.
      if let jpeg = try? self.jpeg(of: ByteBuffer(bytes: bytes), track: track) {
        #expect(jpeg.readableBytes > 100)
      }
    }
  }
}
