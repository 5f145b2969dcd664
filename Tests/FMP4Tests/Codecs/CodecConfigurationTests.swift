import FMP4
import NIOCore
import Support
import Testing

/// What every codec says of itself, by the registration authority of ISO/IEC 14496-12 (mp4ra.org) and its own standard.
@Suite("What codecs say of themselves")
struct CodecConfigurationTests {
  private static let records: [CodecID: [UInt8]] = [
    .h264: RecordFixture.h264High, .hevc: RecordFixture.hevcMain, .av1: RecordFixture.av1Main, .aac: [0x11, 0x90],
    .vp9: [2, 0x80, 1, 0x68, 1, 0, 0, 0, 0, 30, 0x82, 1, 1, 1, 0, 0], .vp8: [2, 0x80, 1, 0x68],
    .opus: Array("OpusHead".utf8) + [1, 2, 0x38, 1, 0x80, 0xBB, 0, 0, 0, 0, 0],
    .ac3: [0x10, 0x3D, 0xC0], .eac3: [0x0C, 0x00, 0x20, 0x0F, 0x00],
    .mpegAudio: [0xE4], .alaw: [0, 0, 0x1F, 0x40, 1], .mulaw: [0, 0, 0x3E, 0x80, 2],
  ]

  private func configuration(_ id: CodecID) throws -> any CodecConfiguration {
    try id.type.init(record: ByteBuffer(bytes: try #require(Self.records[id])))
  }

  @Test(
    arguments: [
      (.h264, .video, "avc1", "avcC", nil), (.hevc, .video, "hvc1", "hvcC", nil), (.av1, .video, "av01", "av1C", nil),
      (.vp9, .video, "vp09", "vpcC", nil),
      // ISO/IEC 14496-3 has one frame of priming, RFC 7845 §4.6 80 ms.
      (.aac, .audio, "mp4a", "esds", -1), (.opus, .audio, "Opus", "dOps", -4),
      (.ac3, .audio, "ac-3", "dac3", -1), (.eac3, .audio, "ec-3", "dec3", -1),
    ] as [(CodecID, MediaKind, FourCC, FourCC, Int16?)])
  func `Boxes, kind and roll distance are those of its standard`(
    _ id: CodecID, _ kind: MediaKind, _ entry: FourCC, _ box: FourCC, _ roll: Int16?
  ) {
    let type = id.type
    #expect(type.id == id && type.kind == kind)
    #expect(type.sampleEntry?.type == entry && type.sampleEntry?.configuration == box)
    #expect(type.rollDistance == roll)
  }

  @Test(arguments: CodecID.allCases)
  func `A configuration comes back from its record and from its box`(_ id: CodecID) throws {
    let configuration = try configuration(id)
    let codec = Codec(configuration)
    #expect(try Codec(id, record: ByteBuffer(bytes: configuration.record())) == codec)
    // The box of VP9 lacks the size, which the sample entry has.
    let size = (width: UInt16(codec.codedSize?.width ?? 0), height: UInt16(codec.codedSize?.height ?? 0))
    #expect(Codec(try id.type.init(boxed: ByteBuffer(bytes: configuration.boxed()), size: size)) == codec)
    #expect(!configuration.name.isEmpty && (configuration.name.hasPrefix(id.type.name) || id == .mpegAudio))
  }

  @Test(arguments: CodecID.allCases)
  func `Either video or audio is described, never both`(_ id: CodecID) throws {
    let configuration = try configuration(id)
    #expect((configuration.video != nil) == (id.kind == .video))
    #expect((configuration.audio != nil) == (id.kind == .audio))
    let nothing = ByteBuffer()
    if id.kind == .video {
      #expect(configuration.frameDuration == nil && configuration.duration(of: ByteBuffer(bytes: [1, 2])) == nil)
      #expect(configuration.updated(withParameterSets: []) == nil)
    } else {
      #expect(try configuration.accessUnit(nothing) == nil)
      #expect(try configuration.accessUnit(stream: nothing) == nil)
      #expect(configuration.updated(withParameterSets: [[0x67, 1]]) == nil)
    }
  }

  @Test(arguments: CodecID.allCases)
  func `Nothing at all is no configuration`(_ id: CodecID) {
    #expect(throws: CodecError.self) { try id.type.init(record: ByteBuffer()) }
    #expect(throws: CodecError.self) { try id.type.init(boxed: ByteBuffer()) }
    #expect(throws: CodecError.self) { try id.type.init(stream: ByteBuffer()) }
  }
}
