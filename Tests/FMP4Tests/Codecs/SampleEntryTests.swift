@testable import FMP4
import NIOCore
import Support
import Testing

@Suite struct SampleEntryTests {
  @Test func theEntryOfInterlacedH264() throws {
    let record = RecordFixture.h264Interlaced
    let entry = try entry(Codec(H264.Configuration(record: ByteBuffer(bytes: record))))
    let expected =
      be32(86 + 8 + record.count + 16) + Array("avc1".utf8) + zeros(6) + [0, 1] + zeros(16) + be16(720) + be16(576)
      + [0, 0x48, 0, 0, 0, 0x48, 0, 0] + zeros(4) + [0, 1] + zeros(32) + [0, 0x18, 0xFF, 0xFF]
      + be32(8 + record.count) + Array("avcC".utf8) + record
      + be32(16) + Array("pasp".utf8) + be32(16) + be32(11)
    #expect(entry == expected)
  }

  @Test func coloursAreStatedAndSquareSamplesAreNot() throws {
    let entry = try entry(Codec(HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain10))))
    let color = be32(19) + Array("colrnclx".utf8) + [0, 9, 0, 16, 0, 9, 0]
    #expect(Array(entry.suffix(19)) == color)
    #expect(Array(entry[4..<8]) == Array("hvc1".utf8))
    #expect(!contains(entry, "pasp"))
  }

  @Test func coloursThatOnlyThePublisherStatesAreWrittenAndReadBack() throws {
    let display = MasteringDisplay(
      red: .init(x: 34_000, y: 16_000), green: .init(x: 13_250, y: 34_500), blue: .init(x: 7_500, y: 3_000),
      white: .init(x: 15_635, y: 16_450), maximumLuminance: 10_000_000, minimumLuminance: 1)
    let stated = VideoColor(
      description: ColorDescription(primaries: 9, transfer: 18, matrix: 9, range: .limited), masteringDisplay: display,
      lightLevel: ContentLightLevel(maximum: 1000, maximumAverage: 400))
    let codec = Codec(try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Interlaced)))
    let track = TrackDescription(id: .video, codec: codec, timescale: 90_000, statedColor: stated)
    let buffer = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
    let expected =
      be32(19) + Array("colrnclx".utf8) + [0, 9, 0, 18, 0, 9, 0]
      + be32(16) + Array("pasp".utf8) + be32(16) + be32(11)
      + be32(32) + Array("mdcv".utf8) + [13_250, 34_500, 7_500, 3_000, 34_000, 16_000, 15_635, 16_450].flatMap(be16)
      + be32(10_000_000) + be32(1) + be32(12) + Array("clli".utf8) + be16(1000) + be16(400)
    #expect(Array(buffer.readableBytesView.suffix(expected.count)) == expected)
    let entry = try #require(BoxReader(buffer).first { $0.type == "avc1" })
    #expect(codec.statedColor(sampleEntry: entry) == stated)
  }

  @Test func theBitstreamsColoursComeBeforeThePublishers() throws {
    let hevc = Codec(try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevcMain10)))
    let stated = VideoColor(
      description: ColorDescription(primaries: 1, transfer: 1, matrix: 1, range: .full))
    let track = TrackDescription(id: .video, codec: hevc, timescale: 90_000, statedColor: stated)
    #expect(track.color == hevc.videoFormat?.color)
    let buffer = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
    let entry = try #require(BoxReader(buffer).first { $0.type == "hvc1" })
    #expect(hevc.statedColor(sampleEntry: entry) == nil)
  }

  @Test func audioHasNoColours() throws {
    let track = TrackDescription(
      id: .audio, codec: Codec(try Opus.Configuration(channels: 2, preSkip: 0)), timescale: 48_000)
    #expect(track.color == nil)
  }

  @Test func theEntryOfAACHasDescriptorsOfRightLengths() throws {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: [0x12, 0x10, 0x56, 0xE5, 0]))
    let entry = try entry(Codec(configuration))
    let descriptors =
      [0x03, 0x80, 0x80, 0x80, 37, 0, 0, 0, 0x04, 0x80, 0x80, 0x80, 23, 0x40, 0x15] + zeros(11)
      + [0x05, 0x80, 0x80, 0x80, 5, 0x12, 0x10, 0x56, 0xE5, 0, 0x06, 0x80, 0x80, 0x80, 1, 2]
    let expected =
      be32(36 + 12 + descriptors.count) + Array("mp4a".utf8) + zeros(6) + [0, 1] + zeros(8) + be16(2) + be16(16)
      + zeros(4) + be32(44_100 << 16) + be32(12 + descriptors.count) + Array("esds".utf8) + zeros(4) + descriptors
    #expect(entry == expected)
  }

  @Test func ratesBeyond65535HertzAreLeftToTheConfiguration() throws {
    let configuration = try AAC.Configuration(record: ByteBuffer(bytes: [0x10, 0x10]))
    #expect(Array(try entry(Codec(configuration))[32..<36]) == be32(0))
  }

  @Test func theEntryOfOpus() throws {
    let entry = try entry(Codec(Opus.Configuration(channels: 2, preSkip: 312)))
    let expected =
      be32(36 + 19) + Array("Opus".utf8) + zeros(6) + [0, 1] + zeros(8) + be16(2) + be16(16) + zeros(4)
      + be32(48_000 << 16) + be32(19) + Array("dOps".utf8) + RecordFixture.opusStereo
    #expect(entry == expected)
  }

  @Test func descriptorLengthsBeyond127UseAllTheirBytes() throws {
    // A program config element with a comment of 200 bytes.
    let element = RecordFixture.bytes("118004c401002000c8") + [UInt8](repeating: 0x20, count: 200)
    let entry = try entry(Codec(AAC.Configuration(record: ByteBuffer(bytes: element))))
    let at = try #require(entry.indices.first { Array(entry[$0...].prefix(4)) == Array("esds".utf8) })
    // 209 bytes of configuration; 13 fields and 5 bytes of header around them; 3 fields, the same and 6 of SLConfig.
    #expect(Array(entry[at...].dropFirst(8).prefix(5)) == [0x03, 0x80, 0x80, 0x81, 0x71])
  }

  private func entry(_ codec: Codec) throws -> [UInt8] {
    let track = TrackDescription(id: .video, codec: codec, timescale: 90_000)
    let buffer = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
    #expect(buffer.readableBytes <= track.sampleEntryCapacity)
    return Array(buffer.readableBytesView)
  }

  private func contains(_ bytes: [UInt8], _ text: String) -> Bool {
    String(decoding: bytes, as: Unicode.ASCII.self).contains(text)
  }

  private func zeros(_ count: Int) -> [UInt8] { Array(repeating: 0, count: count) }
  private func be16(_ value: Int) -> [UInt8] { [UInt8(value >> 8 & 255), UInt8(value & 255)] }
  private func be32(_ value: Int) -> [UInt8] { be16(value >> 16) + be16(value & 0xFFFF) }
}
