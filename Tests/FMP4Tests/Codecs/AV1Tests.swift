@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct AV1Tests {
  /// As ffprobe 5.1.9 and the codec strings of ffmpeg's own manifests tell of the files the records are from.
  @Test func readsWhatFFprobeReads() throws {
    let main = try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1Main))
    #expect(main.codecString == "av01.0.01M.08", "the colours are the default ones, so they are left out")
    #expect((main.format.width, main.format.height) == (640, 360))
    #expect(main.format.color == ColorDescription(primaries: 1, transfer: 1, matrix: 1, range: .limited))
    #expect(main.format.chroma == .yuv420)

    let tenBit = try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1TenBit))
    #expect(tenBit.codecString == "av01.0.05M.10.0.110.09.18.09.0")
    #expect((tenBit.format.width, tenBit.format.height) == (1280, 720))
    #expect(tenBit.format.lumaBitDepth == 10)
    #expect(tenBit.format.color == ColorDescription(primaries: 9, transfer: 18, matrix: 9, range: .limited))
  }

  @Test(arguments: [RecordFixture.av1Main, RecordFixture.av1TenBit])
  func writesTheRecordThatFFmpegWrote(_ record: [UInt8]) throws {
    let configuration = try AV1.Configuration(record: ByteBuffer(bytes: record))
    #expect(configuration.record() == record)
    #expect(try AV1.Configuration(stream: ByteBuffer(bytes: record.dropFirst(4))) == configuration)
  }

  @Test func aTemporalUnitLosesItsDelimiterAndReportsItsSequenceHeader() throws {
    let configuration = try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1Main))
    let frame: [UInt8] = [0x32, 0x03, 0x10, 0xAA, 0xBB]
    let unit = try AV1.accessUnit(ByteBuffer(bytes: [0x12, 0x00] + configuration.sequenceHeader + frame))
    #expect(unit.isSync)
    #expect(unit.payload == ByteBuffer(bytes: configuration.sequenceHeader + frame))
    #expect(unit.parameterSets == [configuration.sequenceHeader])
    #expect(configuration.updated(withParameterSets: unit.parameterSets) == nil)
    let other = try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1TenBit))
    #expect(configuration.updated(withParameterSets: [other.sequenceHeader])?.sequenceHeader == other.sequenceHeader)
  }

  @Test(arguments: [
    (UInt8(0x10), true),  // key frame, shown
    (0x00, false),  // key frame, not shown
    (0x30, false),  // inter frame, shown
    (0x50, false),  // intra-only frame, shown
    (0x90, false),  // show_existing_frame
  ])
  func onlyAShownKeyFrameIsASyncSample(_ header: UInt8, _ isSync: Bool) throws {
    #expect(try AV1.accessUnit(ByteBuffer(bytes: [0x32, 0x02, header, 0x00])).isSync == isSync)
    #expect(try AV1.accessUnit(ByteBuffer(bytes: [0x1A, 0x02, header, 0x00, 0x22, 0x01, 0xFF])).isSync == isSync)
  }

  @Test func theLastUnitMayLackItsSize() throws {
    let unit = try AV1.accessUnit(ByteBuffer(bytes: [0x12, 0x00, 0x30, 0x10, 0xAA]))
    #expect(unit.isSync)
    #expect(unit.payload == ByteBuffer(bytes: [0x30, 0x10, 0xAA]))
    let configuration = try AV1.Configuration(record: ByteBuffer(bytes: RecordFixture.av1Main))
    let sizeless = [configuration.sequenceHeader[0] & ~2] + configuration.sequenceHeader.dropFirst(2)
    #expect(try AV1.Configuration(stream: ByteBuffer(bytes: sizeless)) == configuration)
  }

  @Test func sizesBeyondTheEndAreRefused() {
    #expect(throws: CodecError.self) { try AV1.accessUnit(ByteBuffer(bytes: [0x32, 0x03, 0x10, 0xAA])) }
    #expect(throws: CodecError.self) {
      try AV1.accessUnit(ByteBuffer(bytes: [0x32] + Array(repeating: 0xFF, count: 8) + [0x10]))
    }
    #expect(throws: CodecError.self) { try AV1.accessUnit(ByteBuffer(bytes: [0x80])) }
  }

  /// §5.8.3, §5.8.4: the same display as the HEVC messages of `AccessUnitTests` tell of.
  @Test func metadataTellOfHighDynamicRange() throws {
    let display = SyntheticMedia.hex("2A19 02 AE14 51EC 43D7 B0A4 2666 0F5C 500D 5439 0003E800 00000052")
    let light = SyntheticMedia.hex("2A05 01 03E8 0190")
    let frame: [UInt8] = [0x32, 0x02, 0x10, 0x00]
    let unit = try AV1.accessUnit(ByteBuffer(bytes: display + light + frame))
    let found = try #require(unit.masteringDisplay)
    #expect(found.red == MasteringDisplay.Chromaticity(x: 34_000, y: 16_000))
    #expect(found.green == MasteringDisplay.Chromaticity(x: 13_250, y: 34_500))
    #expect(found.blue == MasteringDisplay.Chromaticity(x: 7_500, y: 3_000))
    #expect(found.maximumLuminance == 10_000_000 && found.minimumLuminance == 50)
    #expect(unit.lightLevel == ContentLightLevel(maximum: 1000, maximumAverage: 400))
    // Cut off, or of a type that is not looked at.
    let broken: [UInt8] = [0x2A, 0x03, 0x02, 0xAE, 0x14, 0x2A, 0x00, 0x2A, 0x01, 0x09]
    let cut = try AV1.accessUnit(ByteBuffer(bytes: broken + frame))
    #expect(cut.masteringDisplay == nil && cut.lightLevel == nil && cut.isSync)
  }
}
