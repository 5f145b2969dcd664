package import NIOCore

/// Opus (RFC 6716) as stored by "Encapsulation of Opus in ISO Base Media File Format" (Opus-ISOBMFF). Its timescale is
/// always 48000.
package enum Opus {
  /// Ticks per second of every Opus track.
  package static let timescale: UInt32 = 48_000

  /// The longest packet in ticks: 120 ms (RFC 6716 §3.2.5).
  package static let maximumPacketDuration: UInt32 = 5760

  /// The identification header (RFC 7845 §5.1).
  package struct Configuration: AudioConfiguration {
    package static let id = CodecID.opus
    package static let name = "Opus"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("Opus", "dOps")
    package static let fileBrand: FourCC? = "Opus"
    /// 80 ms (RFC 7845 §4.6), in packets of 20 ms, the usual size of live encoders.
    package static let rollDistance: Int16? = -4

    /// Assignment of output channels to speakers (RFC 7845 §5.1.1).
    package enum Mapping: Sendable, Hashable {
      /// One stream: mono or stereo.
      case single
      /// Family 1: one to eight channels in Vorbis' order.
      case surround(streams: UInt8, coupled: UInt8, channels: [UInt8])
    }

    package let channels: Int
    /// Samples at 48 kHz that the decoder outputs before the audio begins.
    package let preSkip: UInt16
    /// Rate before encoding in Hz, for information only. 0 if unknown.
    package let inputSampleRate: UInt32
    /// Output gain in units of 1/256 dB.
    package let outputGain: Int16
    package let mapping: Mapping

    /// One stream of one or two channels.
    package init(channels: Int, preSkip: UInt16, inputSampleRate: UInt32 = 48_000) throws(CodecError) {
      try self.init(
        channels: channels, preSkip: preSkip, inputSampleRate: inputSampleRate, outputGain: 0, mapping: .single)
    }

    private init(
      channels: Int, preSkip: UInt16, inputSampleRate: UInt32, outputGain: Int16, mapping: Mapping
    ) throws(CodecError) {
      switch mapping {
      case .single:
        guard (1...2).contains(channels) else {
          throw CodecError(.invalid, "Opus with \(channels) channels in mapping family 0; it has 1 or 2")
        }
      case .surround(let streams, let coupled, let table):
        let total = Int(streams) + Int(coupled)
        guard (1...8).contains(channels), table.count == channels, streams > 0, coupled <= streams, total <= 255,
          table.allSatisfy({ Int($0) < total || $0 == 255 })
        else {
          throw CodecError(
            .invalid, "Opus mapping family 1 with \(channels) channels of \(streams) streams, \(coupled) coupled")
        }
      }
      self.channels = channels
      self.preSkip = preSkip
      self.inputSampleRate = inputSampleRate
      self.outputGain = outputGain
      self.mapping = mapping
    }

    /// Reads "OpusHead" (RFC 7845 §5.1), little-endian.
    package init(record opusHead: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(opusHead, name: "OpusHead")
      guard try reader.bytes(8) == Array("OpusHead".utf8) else {
        throw CodecError(.invalid, "the Opus header does not begin with \"OpusHead\"", offset: 0)
      }
      let version = try reader.u8()
      guard version < 16 else {
        throw CodecError(.unsupported, "OpusHead of version \(version); below 16 is known", offset: 8)
      }
      let channels = Int(try reader.u8())
      let preSkip = try reader.u16().byteSwapped
      let rate = try reader.u32().byteSwapped
      let gain = Int16(bitPattern: try reader.u16().byteSwapped)
      let mapping = try Self.mapping(&reader, channels: channels)
      try self.init(
        channels: channels, preSkip: preSkip, inputSampleRate: rate, outputGain: gain, mapping: mapping)
    }

    /// Reads the payload of a `dOps` box (Opus-ISOBMFF §4.3.2), big-endian.
    package init(boxed: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(boxed, name: "dOps")
      let version = try reader.u8()
      guard version == 0 else {
        throw CodecError(.unsupported, "dOps of version \(version); only 0 is known", offset: 0)
      }
      let channels = Int(try reader.u8())
      let preSkip = try reader.u16()
      let rate = try reader.u32()
      let gain = Int16(bitPattern: try reader.u16())
      let mapping = try Self.mapping(&reader, channels: channels)
      try self.init(
        channels: channels, preSkip: preSkip, inputSampleRate: rate, outputGain: gain, mapping: mapping)
    }

    /// The mapping family and its table. Both headers have the same form of it.
    private static func mapping(_ reader: inout ByteReader, channels: Int) throws(CodecError) -> Mapping {
      let family = try reader.u8()
      switch family {
      case 0: return .single
      case 1:
        let streams = try reader.u8()
        let coupled = try reader.u8()
        return .surround(streams: streams, coupled: coupled, channels: try reader.bytes(channels))
      default: throw CodecError(.unsupported, "Opus channel mapping family \(family); supported: 0 and 1")
      }
    }

    package var sampleRate: UInt32 { Opus.timescale }
    package var frameDuration: UInt32? { nil }
    package func duration(of frame: ByteBuffer) -> UInt32? { Opus.packetDuration(frame) }

    /// A packet of one frame of 20 ms by CELT, of which nothing but the flag of silence is coded (RFC 6716 §4.3). A decoder
    /// makes two channels of one.
    package var silence: ByteBuffer? { mapping == .single ? ByteBuffer(bytes: [0xF8, 0xFF, 0xFE]) : nil }

    /// "opus": browsers expect lower case.
    package var codecString: String { "opus" }

    /// "OpusHead" (RFC 7845 §5.1), little-endian.
    package func record() -> [UInt8] {
      var header = Array("OpusHead".utf8) + [1, UInt8(truncatingIfNeeded: channels)]
      appendBigEndian(preSkip.byteSwapped, to: &header)
      appendBigEndian(inputSampleRate.byteSwapped, to: &header)
      appendBigEndian(outputGain.byteSwapped, to: &header)
      return header + mappingTable
    }

    /// The payload of a `dOps` box (Opus-ISOBMFF §4.3.2), big-endian.
    package func boxed() -> [UInt8] {
      var record: [UInt8] = [0, UInt8(truncatingIfNeeded: channels)]
      appendBigEndian(preSkip, to: &record)
      appendBigEndian(inputSampleRate, to: &record)
      appendBigEndian(outputGain, to: &record)
      return record + mappingTable
    }

    private var mappingTable: [UInt8] {
      switch mapping {
      case .single: [0]
      case .surround(let streams, let coupled, let table): [1, streams, coupled] + table
      }
    }
  }

  /// Duration of a packet in ticks of 48 kHz (RFC 6716 §3.1, §3.2). Nil if the packet is empty, or if its duration is 0
  /// or more than 120 ms.
  package static func packetDuration(_ packet: ByteBuffer) -> UInt32? {
    guard let header = packet.getInteger(at: packet.readerIndex, as: UInt8.self) else { return nil }
    let configuration = header >> 3
    let frame: UInt32 =
      switch configuration {
      case 0..<12: [480, 960, 1920, 2880][Int(configuration & 3)]
      case 12..<16: [480, 960][Int(configuration & 1)]
      default: 120 << UInt32(configuration & 3)
      }
    let count: UInt32
    switch header & 3 {
    case 0: count = 1
    case 1, 2: count = 2
    default:
      guard let frames = packet.getInteger(at: packet.readerIndex + 1, as: UInt8.self) else { return nil }
      count = UInt32(frames & 63)
    }
    let duration = frame * count
    return (1...maximumPacketDuration).contains(duration) ? duration : nil
  }
}
