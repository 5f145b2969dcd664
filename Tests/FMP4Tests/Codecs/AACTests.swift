@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct AACTests {
  /// As libavcodec writes silence of one and of two channels.
  @Test(
    arguments: [
      ("1188", "01182007"), ("1190", "211004608c1c"), ("eb098800", "01182007"), ("131056e598", "211004608c1c"),
      ("11b8", nil), ("118004c4010020000d4c61766335392e33372e31303056e500", nil),
    ] as [(String, String?)])
  func aFrameOfSilenceHasTheElementsOfItsChannels(_ record: String, _ frame: String?) throws {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: RecordFixture.bytes(record)))
    #expect(configuration.silence.map { Array($0.readableBytesView) } == frame.map(RecordFixture.bytes))
  }

  /// Front centre, two pairs and a low frequency element: 3 and 4 bits begin each, and 111 ends the frame.
  @Test func aFrameOfSilenceInFivePointOneHasFourElements() throws {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: RecordFixture.bytes("11b056e500")))
    var reader = BitReader(Array(try #require(configuration.silence).readableBytesView))
    for (element, tag, rest) in [(0, 0, 22), (1, 0, 36), (1, 1, 36), (3, 0, 22)] as [(UInt32, UInt32, Int)] {
      #expect(try reader.bits(3) == element)
      #expect(try reader.bits(4) == tag)
      try reader.skip(rest)
    }
    #expect(try reader.bits(3) == 7)
    #expect(reader.remaining < 8)
  }

  struct Example: Sendable, CustomStringConvertible {
    var configuration: String
    var codecString: String
    var rate: UInt32
    var channels: Int
    var samplesPerFrame: UInt32
    var description: String { configuration }

    init(_ configuration: String, _ codecString: String, _ rate: UInt32, _ channels: Int, _ samplesPerFrame: UInt32) {
      self.configuration = configuration
      self.codecString = codecString
      self.rate = rate
      self.channels = channels
      self.samplesPerFrame = samplesPerFrame
    }
  }

  @Test(arguments: [
    // As the encoder of ffmpeg 5.1.9 wrote them, `-f lavfi -i sine=r=RATE -ac CHANNELS -c:a aac`; the fifth has the
    // layout 2.1, which takes a program config element.
    Example("121056e500", "mp4a.40.2", 44_100, 2, 1024),
    Example("118856e500", "mp4a.40.2", 48_000, 1, 1024),
    Example("11b056e500", "mp4a.40.2", 48_000, 6, 1024),
    Example("101056e500", "mp4a.40.2", 96_000, 2, 1024),
    Example("118004c4010020000d4c61766335392e33372e31303056e500", "mp4a.40.2", 48_000, 3, 1024),
    // Put together field by field from ISO/IEC 14496-3 §1.6.2.1:
    Example("1210", "mp4a.40.2", 44_100, 2, 1024),
    Example("11b8", "mp4a.40.2", 48_000, 8, 1024),
    // LC at 24000 Hz, then the sync extension: SBR to 48000 Hz.
    Example("131056e598", "mp4a.40.5", 48_000, 2, 2048),
    // The same over one channel, then parametric stereo.
    Example("130856e59d4880", "mp4a.40.29", 48_000, 2, 2048),
    // Object type 5 first: 22050 Hz, stereo, SBR to 44100 Hz, LC.
    Example("2b920800", "mp4a.40.5", 44_100, 2, 2048),
    // Object type 29 first: 24000 Hz, mono, SBR to 48000 Hz, LC.
    Example("eb098800", "mp4a.40.29", 48_000, 2, 2048),
    // Down-sampled SBR: 48000 Hz stay 48000 Hz, and a frame stays a frame.
    Example("29918800", "mp4a.40.5", 48_000, 2, 1024),
    // frameLengthFlag.
    Example("1194", "mp4a.40.2", 48_000, 2, 960),
    // 48001 Hz behind frequency index 15.
    Example("17805dc088", "mp4a.40.2", 48_001, 1, 1024),
  ])
  func readsEveryFormOfTheConfiguration(_ example: Example) throws {
    let bytes = RecordFixture.bytes(example.configuration)
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: bytes))
    #expect(configuration.codecString == example.codecString)
    #expect(configuration.sampleRate == example.rate)
    #expect(configuration.channels == example.channels)
    #expect(configuration.samplesPerFrame == example.samplesPerFrame)
    #expect(configuration.audioSpecificConfig == bytes)
  }

  @Test(arguments: [
    ("f8e640", CodecError.Code.unsupported, "ELD"), ("0990", .unsupported, "Main"), ("1690", .invalid, "index 13"),
    ("11c0", .invalid, "configuration 8"), ("2b100800", .invalid, "96000"), ("12", .truncated, "end"),
  ])
  func refusalsSayWhatIsWrong(_ configuration: String, _ code: CodecError.Code, _ word: String) {
    let error = #expect(throws: CodecError.self) {
      try AAC.Configuration(record: ByteBuffer(bytes: RecordFixture.bytes(configuration)))
    }
    #expect(error?.code == code)
    #expect(error?.reason.contains(word) == true, "\(error?.reason ?? "")")
  }

  @Test func the1024thByteIsTakenAndThe1025thRefused() throws {
    let bytes = [0x12, 0x10] + [UInt8](repeating: 0, count: 1022)
    _ = try AAC.Configuration(record: ByteBuffer(bytes: bytes))
    #expect(throws: CodecError.self) { try AAC.Configuration(record: ByteBuffer(bytes: bytes + [0])) }
  }
}
