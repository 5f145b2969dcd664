@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct H264Tests {
  /// Sizes, aspect, colours and rates as ffprobe 5.1.9 prints them of the files the records are from.
  @Test func readsWhatFFprobeReads() throws {
    let high = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High))
    #expect(high.codecString == "avc1.64001E")
    #expect((high.format.width, high.format.height) == (640, 360))
    #expect(high.format.color == ColorDescription(primaries: 1, transfer: 1, matrix: 1, range: .limited))
    #expect(high.format.frameRate == FrameRate(numerator: 30, denominator: 1))
    #expect(high.format.reorderDepth == 2)
    #expect(high.format.chroma == .yuv420)

    let hd = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Baseline1080))
    #expect(hd.codecString == "avc1.42C028")
    #expect((hd.format.width, hd.format.height) == (1920, 1080))
    #expect(hd.format.frameRate == FrameRate(numerator: 30_000, denominator: 1001))
    #expect(hd.format.reorderDepth == 0)
    #expect(hd.format.color == nil)

    let interlaced = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Interlaced))
    #expect((interlaced.format.width, interlaced.format.height) == (720, 576))
    #expect(interlaced.format.sampleAspectRatio == SampleAspectRatio(16, 11))
    #expect(interlaced.format.displaySize == (1047, 576))
    #expect(interlaced.format.frameRate == FrameRate(numerator: 25, denominator: 1))

    let high422 = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High422))
    #expect(high422.codecString == "avc1.7A001F")
    #expect((high422.format.width, high422.format.height) == (642, 362))
    #expect(high422.format.chroma == .yuv422)
    #expect((high422.format.lumaBitDepth, high422.format.chromaBitDepth) == (10, 10))
    #expect(high422.format.color?.isFullRange == true)
    #expect(high422.format.frameRate == FrameRate(numerator: 60, denominator: 1))

    let high444 = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High444))
    #expect(high444.codecString == "avc1.F4000D")
    #expect((high444.format.width, high444.format.height) == (320, 240))
    #expect(high444.format.chroma == .yuv444)
    #expect(high444.format.frameRate == FrameRate(numerator: 24_000, denominator: 1001))

    let reference = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Reference))
    #expect(reference.format.reorderDepth == 2, "the field lies behind the reference decoder's parameters")
  }

  @Test(arguments: [
    RecordFixture.h264High, RecordFixture.h264Baseline1080, RecordFixture.h264Interlaced, RecordFixture.h264High422,
    RecordFixture.h264High444, RecordFixture.h264Reference,
  ])
  func writesTheRecordThatFFmpegWrote(_ record: [UInt8]) throws {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: record))
    #expect(configuration.record() == record)
    let again = try H264.Configuration(sps: configuration.sps, pps: configuration.pps)
    #expect(again == configuration)
  }

  @Test func lengthSizeIsNoPartOfTheConfiguration() throws {
    var record = RecordFixture.h264High
    record[4] = 0xFD
    let two = try H264.Configuration(record: ByteBuffer(bytes: record))
    let four = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High))
    #expect(two.lengthSize == 2)
    #expect(two == four)
    #expect(two.hashValue == four.hashValue)
    #expect(two.record() == RecordFixture.h264High, "our own record always states four bytes")
  }

  @Test func lengthSizeThreeIsRefused() {
    var record = RecordFixture.h264High
    record[4] = 0xFE
    #expect(throws: CodecError.self) { try H264.Configuration(record: ByteBuffer(bytes: record)) }
  }

  @Test func extradataWithStartCodesGivesTheSameConfiguration() throws {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High))
    let extradata: [UInt8] = [0, 0, 0, 1] + configuration.sps[0] + [0, 0, 1] + configuration.pps[0] + [0, 0, 0]
    #expect(try H264.Configuration(stream: ByteBuffer(bytes: extradata)) == configuration)
  }

  @Test func aSetOfTheSameNumberTakesItsPlace() throws {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High))
    let other = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Baseline1080))
    #expect(configuration.updated(withParameterSets: configuration.sps + configuration.pps) == nil)
    #expect(configuration.updated(withParameterSets: []) == nil)
    #expect(configuration.updated(withParameterSets: other.sps + other.pps) == other)
    #expect(configuration.updated(withParameterSets: [[0x67, 0x64]]) == nil, "what cannot be read changes nothing")
  }

  @Test func thirtyTwoSequenceParameterSetsAreTooMany() throws {
    let configuration = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264High))
    let sps = configuration.sps[0]
    _ = try H264.Configuration(sps: Array(repeating: sps, count: 31), pps: configuration.pps)
    #expect(throws: CodecError.self) {
      try H264.Configuration(sps: Array(repeating: sps, count: 32), pps: configuration.pps)
    }
  }

  @Test func aSideOf16384IsTakenAnd16400Refused() throws {
    #expect(throws: Never.self) { try frame(width: 16_384) }
    #expect(throws: CodecError.self) { try frame(width: 16_385) }
    #expect(throws: CodecError.self) { try frame(width: 0) }
    #expect(throws: CodecError.self) { try frame(width: -2) }
  }

  private func frame(width: Int64) throws -> VideoFormat {
    try VideoFormat(width: width, height: 16, chroma: .yuv420, lumaBitDepth: 8, chromaBitDepth: 8)
  }
}
