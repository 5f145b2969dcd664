package import NIOCore

/// AC-3 (ETSI TS 102 366, ATSC A/52), as stored in MP4 by its annex F. A sample is one syncframe. Nothing but the frames
/// states the parameters, so the record is made of a frame.
package enum AC3 {
  /// Samples of a frame, for each channel.
  package static let samplesPerFrame: UInt32 = 1536
  package static let syncWord: UInt16 = 0x0B77
  /// Bytes of a frame that `Frame` reads.
  package static let headerBytes = 8
  /// `fscod`.
  static let rates: [UInt32] = [48_000, 44_100, 32_000]

  /// Main channels of an `acmod` (table 4.3), without the low frequencies.
  static func mainChannels(_ mode: UInt8) -> Int { [2, 1, 2, 3, 3, 4, 4, 5][Int(mode & 7)] }

  /// The header of a syncframe (§4.3, §4.4).
  package struct Frame: Sendable, Hashable {
    package let configuration: Configuration
    /// Bytes of the whole frame.
    package let byteCount: Int

    /// kbit/s by `frmsizecod` (table 4.13); each twice, for two sizes at 44.1 kHz.
    private static let bitRates = [
      32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 576, 640,
    ]

    /// Nil if no frame of AC-3 begins with the bytes.
    package init?(_ bytes: ByteBuffer) {
      guard let head = bytes.getBytes(at: bytes.readerIndex, length: AC3.headerBytes), head[0] == 0x0B, head[1] == 0x77
      else { return nil }
      let (rate, size) = (head[4] >> 6, Int(head[4] & 63))
      let (identification, mode) = (head[5] >> 3, head[6] >> 5)
      // Streams of half and quarter rates have a greater identification.
      guard Int(rate) < AC3.rates.count, size >> 1 < Self.bitRates.count, identification <= 8 else { return nil }
      // Levels of mixing stand between mode and `lfeon`.
      var before = 3
      if mode & 1 != 0, mode != 1 { before += 2 }
      if mode & 4 != 0 { before += 2 }
      if mode == 2 { before += 2 }
      let fields = UInt16(head[6]) << 8 | UInt16(head[7])
      configuration = Configuration(
        rateCode: rate, identification: identification, service: head[5] & 7, mode: mode,
        hasLowFrequencies: fields >> (15 - UInt16(before)) & 1 != 0, bitRateCode: UInt8(size >> 1))
      let bitRate = Self.bitRates[size >> 1]
      let words =
        switch rate {
        case 0: bitRate * 2
        case 1: 320 * bitRate / 147 + (size & 1)
        default: bitRate * 3
        }
      byteCount = words * 2
    }
  }

  /// The `dac3` box's content (annex F.4).
  package struct Configuration: AudioConfiguration {
    package static let id = CodecID.ac3
    package static let name = "AC-3"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("ac-3", "dac3")
    package static let isStatedByFrames = true
    package static let rollDistance: Int16? = -1

    /// `fscod`, `bsid`, `bsmod`, `acmod`, `lfeon` and `bit_rate_code`.
    let rateCode: UInt8
    let identification: UInt8
    let service: UInt8
    let mode: UInt8
    let hasLowFrequencies: Bool
    let bitRateCode: UInt8

    private static let byteCount = 3

    init(
      rateCode: UInt8, identification: UInt8, service: UInt8, mode: UInt8, hasLowFrequencies: Bool, bitRateCode: UInt8
    ) {
      self.rateCode = rateCode
      self.identification = identification
      self.service = service
      self.mode = mode
      self.hasLowFrequencies = hasLowFrequencies
      self.bitRateCode = bitRateCode
    }

    package init(record: ByteBuffer) throws(CodecError) {
      guard let bytes = record.getBytes(at: record.readerIndex, length: Self.byteCount) else {
        throw CodecError(.truncated, "a dac3 of \(record.readableBytes) bytes; it has 3")
      }
      var reader = BitReader(bytes)
      let rate = try reader.bits(2)
      guard Int(rate) < AC3.rates.count else { throw CodecError(.invalid, "AC-3 with sampling rate code 3") }
      func field(_ count: Int) throws(CodecError) -> UInt8 { UInt8(truncatingIfNeeded: try reader.bits(count)) }
      self.init(
        rateCode: UInt8(rate), identification: try field(5), service: try field(3), mode: try field(3),
        hasLowFrequencies: try reader.flag(), bitRateCode: try field(5))
    }

    package static func record(inFrame frame: ByteBuffer) -> [UInt8]? { Frame(frame)?.configuration.record() }

    package func record() -> [UInt8] {
      let bits =
        UInt32(rateCode) << 22 | UInt32(identification) << 17 | UInt32(service) << 14 | UInt32(mode) << 11
        | (hasLowFrequencies ? 1 : 0) << 10 | UInt32(bitRateCode & 31) << 5
      return [UInt8(bits >> 16 & 255), UInt8(bits >> 8 & 255), UInt8(bits & 255)]
    }

    package var sampleRate: UInt32 { AC3.rates[Int(rateCode) % AC3.rates.count] }
    package var channels: Int { AC3.mainChannels(mode) + (hasLowFrequencies ? 1 : 0) }
    package var frameDuration: UInt32? { AC3.samplesPerFrame }
    package func duration(of frame: ByteBuffer) -> UInt32? { AC3.samplesPerFrame }
    package var codecString: String { "ac-3" }
  }
}
