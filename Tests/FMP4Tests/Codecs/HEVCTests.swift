@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct HEVCTests {
  /// Sizes, aspect, colours and rates as ffprobe 5.1.9 prints them of the files the records are from.
  @Test func readsWhatFFprobeReads() throws {
    let main = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain))
    #expect(main.codecString == "hvc1.1.6.L120.90")
    #expect((main.format.width, main.format.height) == (1920, 1080))
    #expect(main.format.frameRate == FrameRate(numerator: 30, denominator: 1))
    #expect(main.format.reorderDepth == 2)

    let main10 = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain10))
    #expect(main10.codecString == "hvc1.2.4.L90.90")
    #expect((main10.format.lumaBitDepth, main10.format.chromaBitDepth) == (10, 10))
    #expect(main10.format.color == ColorDescription(primaries: 9, transfer: 16, matrix: 9, range: .limited))
    #expect(main10.format.frameRate == FrameRate(numerator: 50, denominator: 1))
    #expect(main10.sei.count == 2, "mastering display and light levels")

    let range = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevc422))
    #expect(range.codecString == "hvc1.4.10.L63.9D.8")
    #expect(range.format.chroma == .yuv422)
    #expect(range.format.sampleAspectRatio == SampleAspectRatio(4, 3))
    #expect(range.format.displaySize == (853, 360))
    #expect(range.format.frameRate == FrameRate(numerator: 30_000, denominator: 1001))

    let full = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevc444))
    #expect((full.format.width, full.format.height) == (1000, 562))
    #expect(full.format.chroma == .yuv444)
    #expect(full.format.lumaBitDepth == 12)
    #expect(full.format.frameRate == FrameRate(numerator: 24, denominator: 1))
  }

  @Test(arguments: [
    RecordFixture.hevcMain, RecordFixture.hevcMain10, RecordFixture.hevc422, RecordFixture.hevc444,
  ])
  func writesTheRecordThatFFmpegWrote(_ record: [UInt8]) throws {
    let configuration = try HEVC.Configuration(record: ByteBuffer(bytes: record))
    // ffmpeg marks an array incomplete where it leaves its sets in the samples; weir never does.
    #expect(configuration.record() == withCompleteArrays(record))
    let again = try HEVC.Configuration(vps: configuration.vps, sps: configuration.sps, pps: configuration.pps)
    #expect(again == configuration)
  }

  @Test func userDataIsNoPartOfTheRecord() throws {
    let configuration = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain))
    let sets = [
      configuration.vps[0], configuration.sps[0], configuration.pps[0], [0x4E, 0x01, 0x05, 0x01, 0x55, 0x80],
    ]
    let code: [UInt8] = [0, 0, 0, 1]
    let extradata: [UInt8] = sets.flatMap { code + $0 }
    let read = try HEVC.Configuration(stream: ByteBuffer(bytes: extradata))
    #expect(read == configuration)
    #expect(read.sei.isEmpty)
  }

  @Test func aSetOfTheSameNumberTakesItsPlace() throws {
    let configuration = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain))
    let other = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevc444))
    let same = configuration.vps + configuration.sps + configuration.pps
    #expect(configuration.updated(withParameterSets: same) == nil)
    #expect(configuration.updated(withParameterSets: other.vps + other.sps + other.pps) == other)
    #expect(configuration.updated(withParameterSets: [[0x42]]) == nil)
  }

  @Test func everyKindOfParameterSetIsNeeded() throws {
    let all = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain))
    #expect(throws: CodecError.self) { try HEVC.Configuration(vps: [], sps: all.sps, pps: all.pps) }
    #expect(throws: CodecError.self) { try HEVC.Configuration(vps: all.vps, sps: [], pps: all.pps) }
    #expect(throws: CodecError.self) { try HEVC.Configuration(vps: all.vps, sps: all.sps, pps: []) }
    #expect(throws: CodecError.self) { try HEVC.Configuration(vps: all.sps, sps: all.sps, pps: all.pps) }
  }

  private func withCompleteArrays(_ record: [UInt8]) -> [UInt8] {
    var record = record
    var index = 23
    for _ in 0..<record[22] {
      record[index] |= 0x80
      let count = Int(record[index + 1]) << 8 | Int(record[index + 2])
      index += 3
      for _ in 0..<count { index += 2 + (Int(record[index]) << 8 | Int(record[index + 1])) }
    }
    return record
  }
}
