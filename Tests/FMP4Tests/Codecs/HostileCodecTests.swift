@testable import FMP4
import NIOCore
import Support
import Testing

/// Bytes from the wire may be anything: a parser says why it cannot read them, and never traps.
@Suite struct HostileCodecTests {
  private enum Parser: CaseIterable {
    case avcC, hvcC, av1C, audioSpecificConfig, opusHead

    var examples: [[UInt8]] {
      switch self {
      case .avcC:
        [
          RecordFixture.h264High, RecordFixture.h264High422, RecordFixture.h264Reference,
          RecordFixture.h264Interlaced,
        ]
      case .hvcC: [RecordFixture.hevcMain, RecordFixture.hevc422, RecordFixture.hevc444]
      case .av1C: [RecordFixture.av1Main, RecordFixture.av1TenBit]
      case .audioSpecificConfig:
        ["118004c4010020000d4c61766335392e33372e31303056e500", "130856e59d4880", "2b920800"].map(RecordFixture.bytes)
      case .opusHead: [RecordFixture.bytes("4f707573486561640106380180bb00000000010402000401020305")]
      }
    }

    /// Reads, and writes again what could be read: writers see hostile values too.
    @discardableResult
    func parse(_ bytes: [UInt8]) throws -> Codec {
      let buffer = ByteBuffer(bytes: bytes)
      let codec: Codec =
        switch self {
        case .avcC: Codec(try H264.Configuration(record: buffer))
        case .hvcC: Codec(try HEVC.Configuration(record: buffer))
        case .av1C: Codec(try AV1.Configuration(record: buffer))
        case .audioSpecificConfig: Codec(try AAC.Configuration(record: buffer))
        case .opusHead: Codec(try Opus.Configuration(record: buffer))
        }
      let track = TrackDescription(id: .video, codec: codec, timescale: 90_000)
      let entry = ByteBuffer.boxes(capacity: track.sampleEntryCapacity) { track.writeSampleEntry(&$0) }
      #expect(entry.readableBytes > 36)
      #expect(!codec.codecString.isEmpty)
      return codec
    }
  }

  @Test(arguments: Parser.allCases)
  private func aRecordCutShortAtAnyByteThrowsOrIsShorter(_ parser: Parser) throws {
    for example in parser.examples {
      let whole = try parser.parse(example)
      for length in 0..<example.count {
        // Trailing parts may be optional (extension fields, SBR signalling); then what is left is read.
        let part = try? parser.parse(Array(example.prefix(length)))
        if part == whole { #expect(length >= 2) }
      }
      #expect(throws: CodecError.self) { try parser.parse([]) }
    }
  }

  /// Only the usability information at its end may be cut short: no decoder needs it, and encoders exist that do so.
  @Test func aSetCutShortIsRefusedUntilItTellsTheFormat() throws {
    let h264 = try H264.Configuration(record: ByteBuffer(bytes: RecordFixture.h264Reference))
    let hevc = try HEVC.Configuration(record: ByteBuffer(bytes: RecordFixture.hevc422))
    var read: [Int] = []
    for length in 0..<h264.sps[0].count {
      let cut = try? H264.Configuration(sps: [Array(h264.sps[0].prefix(length))], pps: h264.pps)
      #expect((cut != nil) == (length >= 11), "\(length)")
      if let cut { #expect((cut.format.width, cut.format.height) == (640, 360)) }
    }
    for length in 0..<hevc.sps[0].count {
      let cut = try? HEVC.Configuration(vps: hevc.vps, sps: [Array(hevc.sps[0].prefix(length))], pps: hevc.pps)
      guard let cut else { continue }
      read.append(length)
      #expect((cut.format.width, cut.format.height) == (640, 360))
    }
    #expect(read == Array((read.first ?? 0)..<hevc.sps[0].count))
    #expect(read.first ?? 0 > 24)
  }

  @Test func aRecordOfMoreThan65536BytesIsRefused() {
    let record = [UInt8](repeating: 0, count: 65_537)
    for parser in Parser.allCases { #expect(throws: CodecError.self) { try parser.parse(record) } }
  }

  /// Records with one to eight bytes changed, and as many access units.
  @Test(arguments: Parser.allCases)
  private func changedBytesNeverTrap(_ parser: Parser) {
    var random = SplitMix(state: 0x5EED)
    let rounds = isLong ? 24_000 : 8000
    var read = 0
    for round in 0..<rounds {
      var bytes = parser.examples[round % parser.examples.count]
      for _ in 0...(random.next() % 8) {
        bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
      }
      if (try? parser.parse(bytes)) != nil { read += 1 }
      let buffer = ByteBuffer(bytes: bytes)
      _ = try? H264.accessUnit(buffer, lengthSize: 1)
      _ = try? HEVC.accessUnit(buffer, lengthSize: 2)
      _ = try? AV1.accessUnit(buffer)
      _ = try? VP9.accessUnit(buffer)
      _ = H264.accessUnit(annexB: buffer)
      _ = Opus.packetDuration(buffer)
    }
    #expect(read > 0 && read < rounds, "some changes are harmless and some are not")
  }
}

/// Random numbers that are the same in every run.
private struct SplitMix: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var z = state
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
  }
}
