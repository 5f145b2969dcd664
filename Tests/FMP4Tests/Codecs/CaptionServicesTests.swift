@testable import FMP4
import NIOCore
import Testing

/// Closed captions in messages of H.264 and HEVC. The bytes are built after ATSC A/53-4, CTA-608 and CTA-708.
@Suite struct CaptionServicesTests {
  /// A message of user data with caption triples, as the payload of a NAL unit without its header.
  static func message(_ triples: [[UInt8]], identifier: String = "GA94", flags: UInt8 = 0x40) -> [UInt8] {
    let data: [UInt8] =
      [0xB5, 0, 0x31] + Array(identifier.utf8) + [3, flags | UInt8(triples.count), 0xFF] + triples.flatMap(\.self) + [
        0xFF
      ]
    return [4, UInt8(data.count)] + data + [0x80]
  }

  static func h264(_ message: [UInt8]) -> [CaptionService] {
    let bytes: [UInt8] = [0, 0, 1, 6] + message + [0, 0, 1, 0x65, 0x88, 0x84, 0x80]
    return H264.accessUnit(annexB: ByteBuffer(bytes: bytes)).captions.all
  }

  @Test func `Line 21 declares its first channel, and others by their commands`() {
    #expect(Self.h264(Self.message([[0xFC, 0x80, 0x80]])) == [.channel(1)])
    // Resume caption loading of CC2, roll-up of CC3, resume direct captioning of CC4, with parity.
    #expect(Self.h264(Self.message([[0xFC, 0x1C, 0x20]])) == [.channel(1), .channel(2)])
    #expect(Self.h264(Self.message([[0xFD, 0x15, 0xA7], [0xFD, 0x9D, 0x29]])) == [.channel(3), .channel(4)])
    // Text, extended data and characters are no captions of the second field.
    #expect(Self.h264(Self.message([[0xFD, 0x15, 0x2A], [0xFD, 0x01, 0x03], [0xFD, 0x80, 0x80]])).isEmpty)
  }

  @Test func `Service blocks declare their services`() {
    // A packet of six bytes: services 1 and 9 with a byte each.
    let triples: [[UInt8]] = [[0xFF, 0x03, 0x21], [0xFE, 0x41, 0xE1], [0xFE, 0x09, 0x42], [0xF8, 0, 0]]
    #expect(Self.h264(Self.message(triples)) == [.service(1), .service(9)])
    // What is not marked as valid, and blocks without content.
    #expect(Self.h264(Self.message([[0xFB, 0x03, 0x21], [0xFA, 0x41, 0x41]])).isEmpty)
    #expect(Self.h264(Self.message([[0xFF, 0x02, 0x20], [0xFE, 0, 0]])).isEmpty)
  }

  @Test func `Other user data declares nothing, and none of it traps`() {
    let pair: [[UInt8]] = [[0xFC, 0x80, 0x80]]
    #expect(Self.h264(Self.message(pair, identifier: "DTG1")).isEmpty)
    #expect(Self.h264(Self.message(pair, flags: 0)).isEmpty)
    let whole = Self.message([[0xFC, 0x80, 0x80], [0xFF, 0x03, 0x21], [0xFE, 0x41, 0xE1]])
    for count in 0..<whole.count { _ = Self.h264(Array(whole.prefix(count))) }
    // Extended service numbers, and packets that end within a block.
    for first in UInt8.min...UInt8.max {
      _ = Self.h264(Self.message([[0xFF, first, 0xFF], [0xFE, first, first]]))
    }
  }

  @Test func `HEVC and samples with lengths are read alike`() throws {
    let message = Self.message([[0xFC, 0x80, 0x80]])
    let hevc: [UInt8] = [0, 0, 1, 0x4E, 1] + message + [0, 0, 1, 0x26, 1, 0xAF, 0x80]
    #expect(HEVC.accessUnit(annexB: ByteBuffer(bytes: hevc), temporalLayers: 1).captions.all == [.channel(1)])
    let sample: [UInt8] = [0, 0, 0, UInt8(message.count + 1), 6] + message + [0, 0, 0, 2, 0x65, 0x88]
    let unit = try NALUnits.accessUnit(ByteBuffer(bytes: sample), lengthSize: 4) { header in
      header.first & 31 == 6 ? .keepMessages(headerLength: 1) : .keepSync
    }
    #expect(unit.captions.all == [.channel(1)])
  }

  @Test func `Names are those of playlists`() {
    for name in ["CC1", "CC4", "SERVICE1", "SERVICE63"] { #expect(CaptionService(name)?.name == name) }
    for name in ["CC0", "CC5", "SERVICE0", "SERVICE64", "cc1", "CC", "CC+1x", ""] {
      #expect(CaptionService(name) == nil)
    }
  }
}
