package import NIOCore

/// HEVC (ITU-T H.265, ISO/IEC 23008-2) as stored by ISO/IEC 14496-15 §8, in the form `hvc1`: parameter sets are in the
/// sample entry only.
package enum HEVC {
  /// The parameter sets of a track. Two configurations are equal if their sets are.
  package struct Configuration: VideoConfiguration {
    package static let id = CodecID.hevc
    package static let name = "HEVC"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("hvc1", "hvcC")

    /// NAL units without start code or length, in the order of arrival.
    package let vps: [[UInt8]]
    package let sps: [[UInt8]]
    package let pps: [[UInt8]]
    /// SEI NAL units of the record (prefix and suffix), such as mastering display and light levels. User data, by which
    /// some encoders identify themselves, is left out.
    package let sei: [[UInt8]]
    /// Bytes of the length before each NAL unit in the publisher's access units (1, 2 or 4). weir writes 4.
    package let lengthSize: Int
    package let format: VideoFormat
    let sequence: SequenceParameters
    /// At least 1.
    package var temporalLayers: UInt8 { sequence.temporalLayers }

    package init(vps: [[UInt8]], sps: [[UInt8]], pps: [[UInt8]]) throws(CodecError) {
      try self.init(vps: vps, sps: sps, pps: pps, sei: [], lengthSize: 4)
    }

    init(
      vps: [[UInt8]], sps: [[UInt8]], pps: [[UInt8]], sei: [[UInt8]], lengthSize: Int
    ) throws(CodecError) {
      guard let first = sps.first else { throw CodecError(.invalid, "HEVC without a sequence parameter set") }
      guard !vps.isEmpty else { throw CodecError(.invalid, "HEVC without a video parameter set") }
      guard !pps.isEmpty else { throw CodecError(.invalid, "HEVC without a picture parameter set") }
      try HEVC.check(vps, type: .videoParameterSet, name: "video parameter set")
      try HEVC.check(sps, type: .sequenceParameterSet, name: "sequence parameter set")
      try HEVC.check(pps, type: .pictureParameterSet, name: "picture parameter set")
      sequence = try SequenceParameters(first)
      for other in sps.dropFirst() { _ = try SequenceParameters(other) }
      self.vps = vps
      self.sps = sps
      self.pps = pps
      self.sei = sei
      self.lengthSize = lengthSize
      self.format = sequence.format
    }

    /// Reads the parameter sets of a byte stream with start codes. Other NAL units are ignored.
    package init(stream extradata: ByteBuffer) throws(CodecError) {
      guard extradata.readableBytes <= ByteReader.maximumRecordSize else {
        throw CodecError(.invalid, "HEVC extradata of \(extradata.readableBytes) bytes, at most 65536 are read")
      }
      var units = AnnexBNALUnits(extradata)
      var sets = Sets()
      while let unit = units.next() { sets.add(Array(unit)) }
      try self.init(vps: sets.vps, sps: sets.sps, pps: sets.pps, sei: sets.sei, lengthSize: 4)
    }

    /// Reads an `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 §8.3.3).
    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "hvcC")
      let version = try reader.u8()
      // Early writers wrote 0 here.
      guard version <= 1 else {
        throw CodecError(.unsupported, "hvcC of version \(version); only 1 is known", offset: 0)
      }
      _ = try reader.bytes(20)  // profile, level, formats: also in the sequence parameter set
      let lengthSize = Int(try reader.u8() & 3) + 1
      guard lengthSize != 3 else { throw CodecError(.invalid, "hvcC states NAL unit lengths of 3 bytes", offset: 21) }
      var sets = Sets()
      for _ in 0..<(try reader.u8()) {
        _ = try reader.u8()  // array_completeness and type: each unit's own header has the type
        for _ in 0..<(try reader.u16()) {
          let length = Int(try reader.u16())
          sets.add(try reader.bytes(length))
        }
      }
      try self.init(vps: sets.vps, sps: sets.sps, pps: sets.pps, sei: sets.sei, lengthSize: lengthSize)
    }

    /// The `HEVCDecoderConfigurationRecord` (ISO/IEC 14496-15 §8.3.3), with lengths of four bytes and complete arrays.
    package func record() -> [UInt8] {
      var record: [UInt8] = [1]
      record.append(contentsOf: sequence.profileTierLevel)
      appendBigEndian(0xF000 | sequence.minimumSpatialSegmentation, to: &record)
      record.append(0xFC)  // parallelismType: unknown
      record.append(0xFC | format.chroma.rawValue)
      record.append(0xF8 | (format.lumaBitDepth &- 8))
      record.append(0xF8 | (format.chromaBitDepth &- 8))
      appendBigEndian(UInt16(0), to: &record)  // avgFrameRate: unspecified
      record.append(sequence.temporalLayers << 3 | (sequence.temporalNesting == .nested ? 4 : 0) | 3)
      let arrays: [(type: NALUnitType, sets: [[UInt8]])] = [
        (.videoParameterSet, vps), (.sequenceParameterSet, sps), (.pictureParameterSet, pps),
        (.prefixSEI, sei.filter { HEVC.type(of: $0) == .prefixSEI }),
        (.suffixSEI, sei.filter { HEVC.type(of: $0) == .suffixSEI }),
      ].filter { !$0.1.isEmpty }
      record.append(UInt8(truncatingIfNeeded: arrays.count))
      for array in arrays {
        record.append(0x80 | array.type.rawValue)
        appendBigEndian(UInt16(truncatingIfNeeded: array.sets.count), to: &record)
        for set in array.sets {
          appendBigEndian(UInt16(truncatingIfNeeded: set.count), to: &record)
          record.append(contentsOf: set)
        }
      }
      return record
    }

    /// "hvc1." with profile, compatibility, tier, level and constraints (ISO/IEC 14496-15 Annex E.3).
    package var codecString: String { "hvc1.\(sequence.profileText)" }

    /// The configuration after parameter sets from an access unit. Each replaces the set with the same number. Nil if
    /// that changes nothing, or if a set is unreadable.
    package func updated(withParameterSets sets: [[UInt8]]) -> Configuration? {
      var (vps, sps, pps) = (vps, sps, pps)
      for set in sets {
        switch HEVC.type(of: set) {
        case .videoParameterSet: replaceParameterSet(set, in: &vps, number: HEVC.number)
        case .sequenceParameterSet: replaceParameterSet(set, in: &sps, number: HEVC.number)
        case .pictureParameterSet: replaceParameterSet(set, in: &pps, number: HEVC.number)
        default: break
        }
      }
      if vps == self.vps, sps == self.sps, pps == self.pps { return nil }
      return try? Configuration(vps: vps, sps: sps, pps: pps, sei: sei, lengthSize: lengthSize)
    }

    package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
      try HEVC.accessUnit(payload, lengthSize: lengthSize, temporalLayers: temporalLayers)
    }

    package func accessUnit(stream payload: ByteBuffer) -> AccessUnit? {
      HEVC.accessUnit(annexB: payload, temporalLayers: temporalLayers)
    }
  }

  /// A publisher's access unit as stored in a sample. `lengthSize` is from the record, `temporalLayers` from the
  /// sequence parameter set.
  package static func accessUnit(
    _ payload: ByteBuffer, lengthSize: Int, temporalLayers: UInt8 = 1
  ) throws(CodecError) -> AccessUnit {
    try NALUnits.accessUnit(payload, lengthSize: lengthSize) { fate($0, temporalLayers: temporalLayers) }
  }

  /// An encoder's access unit, a byte stream with start codes (Annex B), as stored in a sample.
  package static func accessUnit(annexB payload: ByteBuffer, temporalLayers: UInt8 = 1) -> AccessUnit {
    NALUnits.accessUnit(annexB: payload) { fate($0, temporalLayers: temporalLayers) }
  }

  /// NAL unit types of ITU-T H.265 table 7-1 that weir uses.
  enum NALUnitType: UInt8 {
    case videoParameterSet = 32
    case sequenceParameterSet = 33
    case pictureParameterSet = 34
    case prefixSEI = 39
    case suffixSEI = 40
  }

  /// Types 16 to 21 are random access pictures (table 7-1). ISO/IEC 14496-15 §8.3.2 lists the types that are not
  /// allowed in a sample of `hvc1`. No frame of the same temporal layer refers to frames of even types up to 14. In the
  /// highest layer no frame at all refers to them.
  private static func fate(_ header: NALUnitHeader, temporalLayers: UInt8) -> NALUnitFate {
    switch header.first >> 1 & 63 {
    case let type where type < 16:
      // nuh_temporal_id_plus1, §7.4.2.2.
      type & 1 == 0 && header.second & 7 >= temporalLayers ? .keepDisposable : .keepReference
    case 16...21: .keepSync
    case 32, 33, 34: .parameterSet
    case 35, 38: .drop
    case NALUnitType.prefixSEI.rawValue: .keepMessages(headerLength: 2)
    default: .keep
    }
  }

  static func type(of unit: [UInt8]) -> NALUnitType? {
    unit.first.flatMap { NALUnitType(rawValue: $0 >> 1 & 63) }
  }

  /// Number of a parameter set among those of its kind.
  private static func number(of set: [UInt8]) -> UInt32? {
    switch type(of: set) {
    case .videoParameterSet: set.count > 2 ? UInt32(set[2] >> 4) : nil
    case .sequenceParameterSet: try? SequenceParameters(set).number
    default: try? numberOfPictureSet(set)
    }
  }

  private static func numberOfPictureSet(_ set: [UInt8]) throws(CodecError) -> UInt32 {
    var reader = BitReader(nalUnit: Array(set.prefix(16)), headerLength: 2)
    return try reader.ue("pps_pic_parameter_set_id", max: 63)
  }

  private static func check(_ sets: [[UInt8]], type: NALUnitType, name: StaticString) throws(CodecError) {
    guard sets.count <= maximumParameterSets else {
      throw CodecError(.invalid, "\(sets.count) times a \(name); at most \(maximumParameterSets) are taken")
    }
    for set in sets {
      guard self.type(of: set) == type, set.count <= maximumParameterSetSize else {
        throw CodecError(.invalid, "an HEVC \(name) of \(set.count) bytes is too long or of another type")
      }
    }
  }

  /// NAL units sorted by type.
  private struct Sets {
    var vps: [[UInt8]] = []
    var sps: [[UInt8]] = []
    var pps: [[UInt8]] = []
    var sei: [[UInt8]] = []

    mutating func add(_ unit: [UInt8]) {
      switch HEVC.type(of: unit) {
      case .videoParameterSet: vps.append(unit)
      case .sequenceParameterSet: sps.append(unit)
      case .pictureParameterSet: pps.append(unit)
      case .prefixSEI, .suffixSEI:
        // Payload type 5 is user data (§D.2.7).
        if unit.count > 2, unit[2] != 5, sei.count < maximumParameterSets { sei.append(unit) }
      case nil: break
      }
    }
  }
}

extension HEVC.Configuration: Hashable {
  package static func == (a: Self, b: Self) -> Bool {
    a.vps == b.vps && a.sps == b.sps && a.pps == b.pps
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(vps)
    hasher.combine(sps)
    hasher.combine(pps)
  }
}
