package import NIOCore

/// AAC (ISO/IEC 14496-3) in MPEG-4 files: Low Complexity, and High Efficiency with SBR and parametric stereo.
package enum AAC {
  /// An `AudioSpecificConfig` (§1.6.2.1), kept as the publisher sent it.
  ///
  /// `sampleRate` is the rate of the output, after SBR if that is signalled. It is the track's timescale and the rate
  /// of the sample entry. `samplesPerFrame` counts samples at this rate (2048 for HE-AAC).
  package struct Configuration: AudioConfiguration {
    package static let id = CodecID.aac
    package static let name = "AAC"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("mp4a", "esds")
    package static let rollDistance: Int16? = -1

    /// Extensions of the AAC core.
    package enum Profile: Sendable, Hashable {
      case lowComplexity
      /// SBR (spectral band replication).
      case highEfficiency
      /// SBR and parametric stereo.
      case highEfficiencyV2
    }

    package let audioSpecificConfig: [UInt8]
    package let profile: Profile
    /// Output rate in Hz; also the track's timescale.
    package let sampleRate: UInt32
    /// Duration of each audio frame in ticks of `sampleRate`.
    package let samplesPerFrame: UInt32
    /// Output channels; 2 for parametric stereo.
    package let channels: Int
    /// The number of the coded channels' arrangement (table 1.19). 0 if a program config element lists them.
    let arrangement: UInt32

    /// Largest configuration that is read, in bytes. Real ones have 2 to 40.
    package static let maximumSize = 1024

    /// Throws `.unsupported` for object types other than Low Complexity and its extensions. The error names the type.
    package init(record audioSpecificConfig: ByteBuffer) throws(CodecError) {
      guard audioSpecificConfig.readableBytes <= Self.maximumSize else {
        throw CodecError(
          .invalid, "an AudioSpecificConfig of \(audioSpecificConfig.readableBytes) bytes, at most 1024 are read")
      }
      let bytes = Array(audioSpecificConfig.readableBytesView)
      let parsed = try SpecificConfig(bytes)
      self.audioSpecificConfig = bytes
      profile = parsed.profile
      sampleRate = parsed.outputFrequency
      samplesPerFrame = parsed.samplesPerFrame
      channels = parsed.profile == .highEfficiencyV2 ? 2 : parsed.channels
      arrangement = parsed.arrangement
    }

    /// `object type` of the outermost layer: 2, 5 or 29.
    package var objectType: Int {
      switch profile {
      case .lowComplexity: 2
      case .highEfficiency: 5
      case .highEfficiencyV2: 29
      }
    }

    package func record() -> [UInt8] { audioSpecificConfig }
    package var name: String { profile == .lowComplexity ? Self.name : "HE-AAC" }
    package var frameDuration: UInt32? { samplesPerFrame }
    package func duration(of frame: ByteBuffer) -> UInt32? { samplesPerFrame }

    /// "mp4a.40." and the object type (RFC 6381 §3.3).
    package var codecString: String { "mp4a.40.\(objectType)" }
  }
}

extension AAC.Configuration: Hashable {
  package static func == (a: Self, b: Self) -> Bool { a.audioSpecificConfig == b.audioSpecificConfig }
  package func hash(into hasher: inout Hasher) { hasher.combine(audioSpecificConfig) }
}

extension AAC {
  /// An `AudioSpecificConfig` that begins at a bit of `bytes`, and whose length nothing states (LATM, ISO/IEC 14496-3
  /// §1.7.3.1). Returns its bytes, of which zeros fill the last, and its length in bits.
  package static func specificConfig(
    in bytes: [UInt8], at bit: Int
  ) throws(CodecError) -> (record: [UInt8], bits: Int) {
    var reader = BitReader(bytes)
    try reader.skip(bit)
    let start = reader
    let left = min(reader.remaining, Configuration.maximumSize * 8)
    let bits = try SpecificConfig(try reader.bytes(left / 8, andBits: left % 8), .inner).bits
    reader = start
    return (try reader.bytes(bits / 8, andBits: bits % 8), bits)
  }

  /// Bytes of a frame in which its program config element lies, if it begins with one.
  package static let programConfigBytes = 320

  /// The AudioSpecificConfig of frames whose headers leave the channels to a program config element (§4.5.1.2): `header`, the
  /// config without channels, with the element at the beginning of `frame`. Nil if none begins there.
  package static func specificConfig(_ header: [UInt8], inFrame frame: [UInt8]) -> [UInt8]? {
    var reader = BitReader(frame)
    // ID_PCE, table 4.85.
    guard header.count == 2, (try? reader.bits(3)) == 5 else { return nil }
    var fields = reader
    guard let element = try? SpecificConfig.programConfigElement(&reader) else { return nil }
    let count = element.fieldsEnd - fields.position
    // Its alignment counts from the beginning of what it lies in.
    guard let written = try? fields.bytes(count / 8, andBits: count % 8) else { return nil }
    fields.alignToByte()
    guard let comment = try? fields.bytes((reader.position - fields.position) / 8) else { return nil }
    return header + written + comment
  }

  /// The fields of an `AudioSpecificConfig`, ISO/IEC 14496-3 §1.6.2.1.
  private struct SpecificConfig {
    var profile = Configuration.Profile.lowComplexity
    var coreFrequency: UInt32
    var outputFrequency: UInt32
    var samplesPerFrame: UInt32
    var channels: Int
    var arrangement: UInt32
    /// Length of the fields before the signalling of SBR behind them.
    var bits: Int

    /// Where it ends.
    enum Extent {
      /// With the bytes.
      case whole
      /// Within them. Nothing is signalled behind its fields.
      case inner
    }

    init(_ bytes: [UInt8], _ extent: Extent = .whole) throws(CodecError) {
      var reader = BitReader(bytes)
      var type = try Self.objectType(&reader)
      coreFrequency = try Self.frequency(&reader)
      outputFrequency = coreFrequency
      arrangement = try reader.bits(4)
      var hierarchical = false
      if type == 5 || type == 29 {
        profile = type == 29 ? .highEfficiencyV2 : .highEfficiency
        outputFrequency = try Self.frequency(&reader)
        type = try Self.objectType(&reader)
        hierarchical = true
      }
      guard type == 2 else {
        throw CodecError(
          .unsupported,
          "AAC of object type \(type) (\(Self.name(ofObjectType: type))); supported: LC, HE-AAC, HE-AAC v2")
      }

      // GASpecificConfig, §4.4.1.
      let frameLength: UInt32 = try reader.flag() ? 960 : 1024
      if try reader.flag() { try reader.skip(14) }  // core coder delay
      try reader.skip(1)  // extensionFlag: no extension for this object type
      channels =
        arrangement == 0
        ? try Self.programConfigElement(&reader).channels : try Self.channels(of: arrangement)

      bits = reader.position
      // Backward compatible signalling of SBR: decoders without SBR stop before it (§1.6.6.1).
      if extent == .whole, !hierarchical, reader.remaining >= 16, try reader.bits(11) == 0x2B7,
        try Self.objectType(&reader) == 5, try reader.flag()
      {
        profile = .highEfficiency
        outputFrequency = try Self.frequency(&reader)
        if reader.remaining >= 12, try reader.bits(11) == 0x548, try reader.flag() { profile = .highEfficiencyV2 }
      }
      guard outputFrequency == coreFrequency || outputFrequency == coreFrequency &* 2 else {
        throw CodecError(.invalid, "AAC with SBR from \(coreFrequency) to \(outputFrequency) Hz; it doubles or keeps")
      }
      samplesPerFrame = outputFrequency == coreFrequency ? frameLength : frameLength * 2
    }

    private static func objectType(_ reader: inout BitReader) throws(CodecError) -> UInt32 {
      let type = try reader.bits(5)
      return type == 31 ? 32 &+ (try reader.bits(6)) : type
    }

    /// Table 1.18.
    private static func frequency(_ reader: inout BitReader) throws(CodecError) -> UInt32 {
      let table: [UInt32] = [
        96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350,
      ]
      let index = Int(try reader.bits(4))
      let frequency = index == 15 ? try reader.bits(24) : index < table.count ? table[index] : 0
      guard (1000...192_000).contains(frequency) else {
        throw CodecError(.invalid, "AAC with sampling frequency index \(index), \(frequency) Hz")
      }
      return frequency
    }

    /// Table 1.19.
    private static func channels(of configuration: UInt32) throws(CodecError) -> Int {
      switch configuration {
      case 1...6: Int(configuration)
      case 7, 12, 14: 8
      case 11: 7
      case 13: 24
      default: throw CodecError(.invalid, "AAC channel configuration \(configuration) is reserved")
      }
    }

    /// `program_config_element`, §4.4.1.1. Returns the number of channels that it lists, and where its fields end before it
    /// is aligned to a byte.
    static func programConfigElement(
      _ reader: inout BitReader
    ) throws(CodecError) -> (channels: Int, fieldsEnd: Int) {
      try reader.skip(10)  // instance, object type, frequency index
      var pairable = 0
      for _ in 0..<3 { pairable += Int(try reader.bits(4)) }  // front, side, back
      let low = Int(try reader.bits(2))
      let data = Int(try reader.bits(3))
      let coupling = Int(try reader.bits(4))
      if try reader.flag() { try reader.skip(4) }  // mono mixdown
      if try reader.flag() { try reader.skip(4) }  // stereo mixdown
      if try reader.flag() { try reader.skip(3) }  // matrix mixdown
      var channels = low
      for _ in 0..<pairable {
        channels += try reader.flag() ? 2 : 1
        try reader.skip(4)
      }
      try reader.skip(4 * low + 4 * data + 5 * coupling)
      let fieldsEnd = reader.position
      reader.alignToByte()
      try reader.skip(8 * Int(try reader.bits(8)))  // comment
      guard (1...64).contains(channels) else {
        throw CodecError(.invalid, "an AAC program config element that lists \(channels) channels")
      }
      return (channels, fieldsEnd)
    }

    private static func name(ofObjectType type: UInt32) -> String {
      switch type {
      case 1: "Main"
      case 3: "SSR"
      case 4: "LTP"
      case 6: "Scalable"
      case 23: "LD"
      case 32, 33, 34: "MPEG audio layer \(type - 31)"
      case 36: "ALS"
      case 39: "ELD"
      case 42: "xHE-AAC"
      default: "not AAC"
      }
    }
  }
}
