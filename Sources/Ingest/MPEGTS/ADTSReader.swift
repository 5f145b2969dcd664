internal import FMP4
internal import NIOCore

/// Finds AAC frames behind ADTS headers (ISO/IEC 14496-3 §1.A.2.2). The configuration comes from the header.
struct ADTSReader: AudioFrameReader {
  let coding = CodecID.aac
  private(set) var damaged = 0
  private var bytes = AudioBytes()
  /// A frame begins with the next byte. Otherwise a header counts only if another one follows its frame.
  private var isAligned = false

  var position: Int { bytes.position }
  var heldBytes: Int { bytes.count }

  mutating func begin() { if bytes.count == 0 { isAligned = true } }

  mutating func append(_ more: ByteBuffer) { bytes.append(more) }

  mutating func drop() {
    bytes.removeAll()
    isAligned = false
  }

  mutating func next() -> AudioFrame? {
    while bytes.count >= ADTSHeader.bytes {
      guard let header = ADTSHeader(bytes, at: 0) else {
        lose(1)
        continue
      }
      if !isAligned {
        guard bytes.count >= header.frameBytes &+ ADTSHeader.bytes else { return nil }
        guard ADTSHeader(bytes, at: header.frameBytes) != nil else {
          bytes.skip(1)
          continue
        }
      }
      guard bytes.count >= header.frameBytes else { return nil }
      // Several blocks behind one header cannot be told apart without decoding them.
      guard header.blocks == 1 else {
        lose(header.frameBytes)
        continue
      }
      let position = bytes.position
      bytes.skip(header.headerBytes)
      guard let payload = bytes.take(header.frameBytes &- header.headerBytes) else { return nil }
      isAligned = true
      return AudioFrame(
        position: position, payload: payload, record: header.audioSpecificConfig, samples: ADTSHeader.samples,
        rate: header.rate)
    }
    return nil
  }

  /// Skips bytes that are no frame. A run of them counts once.
  private mutating func lose(_ count: Int) {
    if isAligned || count > 1 { damaged &+= 1 }
    isAligned = false
    bytes.skip(count)
  }
}

/// The header of an ADTS frame.
struct ADTSHeader {
  /// Bytes of a header without checksum.
  static let bytes = 7
  /// Samples of a block, at the rate of the header.
  static let samples: Int64 = 1024
  /// ISO/IEC 14496-3 table 1.18.
  private static let rates: [UInt32] = [
    96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
  ]

  let headerBytes: Int
  /// Header and payload.
  let frameBytes: Int
  let blocks: Int
  let rate: UInt32
  /// The `AudioSpecificConfig` of the same parameters (ISO/IEC 14496-3 §1.6.2.1).
  let audioSpecificConfig: [UInt8]

  /// Nil if there is no valid header at the offset.
  init?(_ bytes: AudioBytes, at offset: Int) {
    guard bytes.byte(offset) == 0xFF, let second = bytes.byte(offset &+ 1), second & 0xF6 == 0xF0,
      let third = bytes.byte(offset &+ 2), let fourth = bytes.byte(offset &+ 3), let fifth = bytes.byte(offset &+ 4),
      let sixth = bytes.byte(offset &+ 5), let seventh = bytes.byte(offset &+ 6)
    else { return nil }
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
    audioSpecificConfig = [objectType << 3 | index >> 1, (index & 1) << 7 | channels << 3]
  }
}
