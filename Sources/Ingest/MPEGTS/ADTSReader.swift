internal import FMP4
internal import NIOCore

/// Finds AAC frames behind ADTS headers (ISO/IEC 14496-3 §1.A.2.2). The configuration comes from the header.
struct ADTSReader: SyncedAudioReader {
  let coding = CodecID.aac
  var sync = AudioSync()
  /// The newest configuration of a program config element: not every frame has one.
  private var programConfig: [UInt8]?

  var position: Int { sync.bytes.position }
  var heldBytes: Int { sync.bytes.count }

  mutating func drop() { sync.drop() }

  mutating func next() -> AudioFrame? {
    while let header = sync.frame(
      least: ADTSHeader.bytes, header: { ADTSHeader($0, at: 0).map { ($0, $0.frameBytes) } },
      following: ADTSHeader.bytes, follows: { ADTSHeader($0, at: $1) != nil })
    {
      // Several blocks behind one header cannot be told apart without decoding them.
      guard header.blocks == 1 else {
        sync.lose(header.frameBytes)
        continue
      }
      guard let record = record(of: header) else {
        sync.lose(header.frameBytes)
        continue
      }
      let position = sync.bytes.position
      sync.bytes.skip(header.headerBytes)
      guard let payload = sync.bytes.take(header.frameBytes &- header.headerBytes) else { return nil }
      return AudioFrame(
        position: position, payload: payload, record: record, samples: ADTSHeader.samples, rate: header.rate)
    }
    return nil
  }

  /// The configuration of the next frame. Nil if its header leaves the channels to a program config element, and none has come.
  private mutating func record(of header: ADTSHeader) -> [UInt8]? {
    guard header.leavesChannels else { return header.audioSpecificConfig }
    let end = min(header.frameBytes, header.headerBytes &+ AAC.programConfigBytes)
    let beginning = (header.headerBytes..<end).compactMap { sync.bytes.byte($0) }
    if let found = AAC.specificConfig(header.audioSpecificConfig, inFrame: beginning) { programConfig = found }
    guard let known = programConfig, known.starts(with: header.audioSpecificConfig) else { return nil }
    return known
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
  /// The channels are those of a program config element within the frames.
  let leavesChannels: Bool

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
    leavesChannels = channels == 0
    audioSpecificConfig = [objectType << 3 | index >> 1, (index & 1) << 7 | channels << 3]
  }
}
