package import NIOCore

/// The header of an ADTS frame (ISO/IEC 14496-3 §1.A.2.2): AAC with its configuration before each frame.
package struct ADTSHeader: Sendable {
  /// Bytes of a header without checksum.
  package static let bytes = 7
  /// Samples of a block, at the rate of the header.
  package static let samples: Int64 = 1024
  /// ISO/IEC 14496-3 table 1.18.
  private static let rates: [UInt32] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
  ]

  package let headerBytes: Int
  /// Header and payload.
  package let frameBytes: Int
  package let blocks: Int
  package let rate: UInt32
  /// The `AudioSpecificConfig` of the same parameters (ISO/IEC 14496-3 §1.6.2.1).
  package let audioSpecificConfig: [UInt8]
  /// The channels are those of a program config element within the frames.
  package let leavesChannels: Bool

  /// Nil if there is no valid header at the offset of the readable bytes.
  package init?(_ buffer: ByteBuffer, at offset: Int) {
    let bytes = buffer.readableBytesUInt8Span
    guard offset >= 0, bytes.count >= Self.bytes, offset <= bytes.count &- Self.bytes, bytes[offset] == 0xFF else {
      return nil
    }
    let (second, third, fourth) = (bytes[offset &+ 1], bytes[offset &+ 2], bytes[offset &+ 3])
    let (fifth, sixth, seventh) = (bytes[offset &+ 4], bytes[offset &+ 5], bytes[offset &+ 6])
    guard second & 0xF6 == 0xF0 else { return nil }
    let index = third >> 2 & 15
    guard index < Self.rates.count else { return nil }
    rate = Self.rates[Int(index)]
    // Without `protection_absent` a checksum of 16 bits follows.
    headerBytes = second & 1 == 0 ? Self.bytes &+ 2 : Self.bytes
    frameBytes = Int(fourth & 3) << 11 | Int(fifth) << 3 | Int(sixth >> 5)
    guard frameBytes > headerBytes else { return nil }
    blocks = Int(seventh & 3) &+ 1
    let objectType = (third >> 6) &+ 1
    let channels = (third & 1) << 2 | fourth >> 6
    leavesChannels = channels == 0
    audioSpecificConfig = [objectType << 3 | index >> 1, (index & 1) << 7 | channels << 3]
  }
}

extension AAC {
  /// A frame that had an ADTS header. The record is the `AudioSpecificConfig` by header and frame, nil if they state none.
  package typealias Framed = (header: ADTSHeader, frame: ByteBuffer, record: [UInt8]?)

  /// The frames of a payload that has ADTS headers, each without its header: so many at most, and whether there are more. Bytes
  /// behind the last frame are left out. Nil if the payload does not begin with the header of a frame that is there: no frame of
  /// AAC begins with the same bits, which would be the end of an empty one.
  package static func framesWithADTS(in payload: ByteBuffer, most: Int) -> (frames: [Framed], hasMore: Bool)? {
    var rest = payload
    var frames: [Framed] = []
    while frames.count < most, let header = ADTSHeader(rest, at: 0), header.blocks == 1,
      let whole = rest.readSlice(length: header.frameBytes)
    {
      var frame = whole
      frame.moveReaderIndex(forwardBy: header.headerBytes)
      let beginning = Array(frame.readableBytesView.prefix(programConfigBytes))
      let record =
        header.leavesChannels
        ? specificConfig(header.audioSpecificConfig, inFrame: beginning) : header.audioSpecificConfig
      frames.append((header, frame, record))
    }
    return frames.isEmpty ? nil : (frames, frames.count == most && ADTSHeader(rest, at: 0) != nil)
  }
}
