package import NIOCore

/// MPEG audio of layers I, II and III: MP1, MP2 and MP3 (ISO/IEC 11172-3 §2.4, ISO/IEC 13818-3 §2.4, and the quarter
/// sampling rates of "MPEG 2.5"). Publishers send it; outputs do not carry it.
package enum MPEGAudio {
  /// Bytes of a frame that `Frame` reads.
  package static let headerBytes = 4

  /// The header of a frame (ISO/IEC 11172-3 §2.4.1.3).
  package struct Frame: Sendable, Hashable {
    package let configuration: Configuration
    /// Bytes of the whole frame with its header. Those of the header in free format, which does not state a length.
    package let byteCount: Int

    /// kbit/s by `bitrate_index`: MPEG-1 layers I, II and III, then the lower sampling rates, layer I, and II and III.
    private static let bitRates: [[Int]] = [
      [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
      [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
      [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
      [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
      [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    ]

    /// Nil if no frame begins with the bytes.
    package init?(_ bytes: ByteBuffer) {
      guard let head = bytes.getInteger(at: bytes.readerIndex, as: UInt32.self), head >> 21 == 0x7FF else { return nil }
      let (version, layer) = (UInt8(head >> 19 & 3), UInt8(4 - (head >> 17 & 3)))
      let (bitRateIndex, rate) = (Int(head >> 12 & 15), UInt8(head >> 10 & 3))
      guard version != 1, layer < 4, bitRateIndex < 15, rate < 3 else { return nil }
      configuration = Configuration(
        version: version, layer: layer, rateCode: rate, isMono: head >> 6 & 3 == 3, isFree: bitRateIndex == 0)
      let table = configuration.isLowRate ? (layer == 1 ? 3 : 4) : Int(layer) - 1
      let bits = Self.bitRates[table][bitRateIndex] * 1000
      // In slots, of four bytes in layer I and of one in the others; the padding is one slot.
      let slots =
        bits * Int(configuration.samplesPerFrame) / 8 / configuration.slotBytes / Int(configuration.sampleRate)
      byteCount =
        bits == 0 ? MPEGAudio.headerBytes : (slots + Int(head >> 9 & 1)) * configuration.slotBytes
    }
  }

  /// The frames that lie in a payload one behind the other, each with its start in nanoseconds from the first: so many at most, and
  /// whether there are more. What follows them and is none is a frame of its own, damaged as it is. The payload as it is, if it
  /// begins with none, or in free format.
  package static func frames(
    in payload: ByteBuffer, most: Int
  ) -> (frames: [(start: Int64, payload: ByteBuffer)], hasMore: Bool) {
    var frames: [(Int64, ByteBuffer)] = []
    var (rest, samples, rate) = (payload, Int64(0), UInt32(1))
    while rest.readableBytes > 0 {
      if frames.count == most { return (frames, true) }
      let start = samples &* 1_000_000_000 / Int64(rate)
      guard let frame = Frame(rest), !frame.configuration.isFree,
        frame.configuration.sampleRate == rate || frames.isEmpty,
        let own = rest.readSlice(length: frame.byteCount)
      else {
        frames.append((start, rest))
        break
      }
      frames.append((start, own))
      rate = frame.configuration.sampleRate
      samples &+= Int64(frame.configuration.samplesPerFrame)
    }
    return (frames, false)
  }

  /// What all frames of a track have in common. Its record is weir's own: nothing but the frames states it.
  package struct Configuration: AudioConfiguration {
    package static let id = CodecID.mpegAudio
    package static let name = "MPEG audio"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = nil
    package static let isStatedByFrames = true
    package static let rollDistance: Int16? = -1

    /// `ID` with the bit before it: 3 is MPEG-1, 2 MPEG-2, 0 MPEG 2.5.
    let version: UInt8
    /// 1 to 3.
    let layer: UInt8
    /// `sampling_frequency`.
    let rateCode: UInt8
    let isMono: Bool
    /// Free format: the bit rate, and with it the length of a frame, is not stated.
    let isFree: Bool

    private static let rates: [UInt32] = [44_100, 48_000, 32_000]

    init(version: UInt8, layer: UInt8, rateCode: UInt8, isMono: Bool, isFree: Bool) {
      self.version = version
      self.layer = layer
      self.rateCode = rateCode
      self.isMono = isMono
      self.isFree = isFree
    }

    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "MPEG audio")
      let bits = try reader.u8()
      let (version, layer, rate) = (bits >> 6, bits >> 4 & 3, bits >> 2 & 3)
      guard version != 1, layer > 0, rate < 3 else {
        throw CodecError(.invalid, "MPEG audio of version \(version), layer \(layer), sampling rate code \(rate)")
      }
      guard bits & 1 == 0 else {
        throw CodecError(.unsupported, "MPEG audio in free format; state a bit rate")
      }
      self.init(version: version, layer: layer, rateCode: rate, isMono: bits & 2 != 0, isFree: false)
    }

    package static func record(inFrame frame: ByteBuffer) -> [UInt8]? { Frame(frame)?.configuration.record() }

    package func record() -> [UInt8] {
      [version << 6 | layer << 4 | rateCode << 2 | (isMono ? 2 : 0) | (isFree ? 1 : 0)]
    }

    package var name: String { "MP\(layer)" }
    package var codecString: String { "mp4a.6B" }
    package var sampleRate: UInt32 {
      Self.rates[Int(rateCode) % Self.rates.count] / (version == 3 ? 1 : version == 2 ? 2 : 4)
    }
    package var channels: Int { isMono ? 1 : 2 }
    package var frameDuration: UInt32? { samplesPerFrame }
    package func duration(of frame: ByteBuffer) -> UInt32? {
      guard let head = Frame(frame), head.configuration == self, head.byteCount <= frame.readableBytes else {
        return nil
      }
      return samplesPerFrame
    }

    /// Samples of a frame, for each channel (ISO/IEC 11172-3 §2.4.2.1, ISO/IEC 13818-3 §2.4.2.3).
    package var samplesPerFrame: UInt32 { layer == 1 ? 384 : layer == 3 && isLowRate ? 576 : 1152 }

    fileprivate var isLowRate: Bool { version != 3 }
    fileprivate var slotBytes: Int { layer == 1 ? 4 : 1 }
  }
}
