package import NIOCore

/// H.264 (ITU-T H.264, ISO/IEC 14496-10) as ISO/IEC 14496-15 §5 stores it.
package enum H264 {
  /// The sequence and picture parameter sets of a track. Two configurations are equal if their sets are. The length
  /// size in the publisher's record does not count: it has no effect on decoding.
  package struct Configuration: VideoConfiguration {
    package static let id = CodecID.h264
    package static let name = "H.264"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("avc1", "avcC")
    package static let fileBrand: FourCC? = "avc1"

    /// NAL units without start code or length, in the order of arrival.
    package let sps: [[UInt8]]
    package let pps: [[UInt8]]
    package let spsExtensions: [[UInt8]]
    /// Bytes of the length before each NAL unit in the publisher's access units (1, 2 or 4). weir writes 4.
    package let lengthSize: Int
    package let format: VideoFormat
    /// `profile_idc`, the byte of constraint flags, and `level_idc` of the first sequence parameter set.
    package let profile: UInt8
    package let compatibility: UInt8
    package let level: UInt8

    package init(sps: [[UInt8]], pps: [[UInt8]]) throws(CodecError) {
      try self.init(sps: sps, pps: pps, spsExtensions: [], lengthSize: 4)
    }

    init(sps: [[UInt8]], pps: [[UInt8]], spsExtensions: [[UInt8]], lengthSize: Int) throws(CodecError) {
      guard let first = sps.first else {
        throw CodecError(.invalid, "H.264 without a sequence parameter set")
      }
      guard !pps.isEmpty else { throw CodecError(.invalid, "H.264 without a picture parameter set") }
      try H264.check(sps, type: 7, name: "sequence parameter set", limit: 31)
      try H264.check(pps, type: 8, name: "picture parameter set", limit: maximumParameterSets)
      try H264.check(spsExtensions, type: 13, name: "sequence parameter set extension", limit: maximumParameterSets)
      let parsed = try SequenceParameters(first)
      for other in sps.dropFirst() { _ = try SequenceParameters(other) }
      self.sps = sps
      self.pps = pps
      self.spsExtensions = spsExtensions
      self.lengthSize = lengthSize
      format = parsed.format
      profile = parsed.profile
      compatibility = parsed.compatibility
      level = parsed.level
    }

    /// Reads the parameter sets of a byte stream with start codes. Other NAL units are ignored.
    package init(stream extradata: ByteBuffer) throws(CodecError) {
      guard extradata.readableBytes <= ByteReader.maximumRecordSize else {
        throw CodecError(.invalid, "H.264 extradata of \(extradata.readableBytes) bytes, at most 65536 are read")
      }
      var units = AnnexBNALUnits(extradata)
      var sps: [[UInt8]] = []
      var pps: [[UInt8]] = []
      var extensions: [[UInt8]] = []
      while let unit = units.next() {
        switch (unit.first ?? 0) & 31 {
        case 7: sps.append(Array(unit))
        case 8: pps.append(Array(unit))
        case 13: extensions.append(Array(unit))
        default: break
        }
      }
      try self.init(sps: sps, pps: pps, spsExtensions: extensions, lengthSize: 4)
    }

    /// Reads an `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 §5.3.3).
    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "avcC")
      let version = try reader.u8()
      guard version == 1 else {
        throw CodecError(.unsupported, "avcC of version \(version); only 1 is known", offset: 0)
      }
      _ = try reader.bytes(3)  // profile, compatibility and level: also in the sequence parameter set
      let lengthSize = Int(try reader.u8() & 3) + 1
      guard lengthSize != 3 else { throw CodecError(.invalid, "avcC states NAL unit lengths of 3 bytes", offset: 4) }
      let sps = try H264.sets(&reader, count: Int(try reader.u8() & 31))
      let pps = try H264.sets(&reader, count: Int(try reader.u8()))
      var extensions: [[UInt8]] = []
      // Old writers leave these fields out, so it is no error. §5.3.3.1.2 requires them for high profiles.
      if let profile = sps.first?.dropFirst().first, SequenceParameters.isHigh(profile: profile),
        reader.remaining >= 4
      {
        _ = try reader.bytes(3)
        extensions = try H264.sets(&reader, count: Int(try reader.u8()))
      }
      try self.init(sps: sps, pps: pps, spsExtensions: extensions, lengthSize: lengthSize)
    }

    /// The `AVCDecoderConfigurationRecord` (ISO/IEC 14496-15 §5.3.3), with lengths of four bytes.
    package func record() -> [UInt8] {
      var record: [UInt8] = [1, profile, compatibility, level, 0xFF, 0xE0 | UInt8(truncatingIfNeeded: sps.count)]
      for set in sps { H264.append(set, to: &record) }
      record.append(UInt8(truncatingIfNeeded: pps.count))
      for set in pps { H264.append(set, to: &record) }
      if SequenceParameters.isHigh(profile: profile) {
        record.append(0xFC | format.chroma.rawValue)
        record.append(0xF8 | (format.lumaBitDepth &- 8))
        record.append(0xF8 | (format.chromaBitDepth &- 8))
        record.append(UInt8(truncatingIfNeeded: spsExtensions.count))
        for set in spsExtensions { H264.append(set, to: &record) }
      }
      return record
    }

    /// "avc1." and profile, compatibility and level in hexadecimal (RFC 6381 §3.3).
    package var codecString: String { "avc1.\(hex(profile))\(hex(compatibility))\(hex(level))" }

    /// The configuration after parameter sets from an access unit. Each replaces the set with the same number. Nil if
    /// that changes nothing, or if a set is unreadable.
    package func updated(withParameterSets sets: [[UInt8]]) -> Configuration? {
      var (sps, pps, extensions) = (sps, pps, spsExtensions)
      for set in sets {
        switch (set.first ?? 0) & 31 {
        case 7: replaceParameterSet(set, in: &sps, number: H264.number)
        case 8: replaceParameterSet(set, in: &pps, number: H264.number)
        case 13: replaceParameterSet(set, in: &extensions, number: H264.number)
        default: break
        }
      }
      if sps == self.sps, pps == self.pps, extensions == spsExtensions { return nil }
      return try? Configuration(sps: sps, pps: pps, spsExtensions: extensions, lengthSize: lengthSize)
    }

    package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? {
      try H264.accessUnit(payload, lengthSize: lengthSize)
    }

    package func accessUnit(stream payload: ByteBuffer) -> AccessUnit? { H264.accessUnit(annexB: payload) }
  }

  /// A publisher's access unit as stored in a sample. `lengthSize` is from the record.
  package static func accessUnit(_ payload: ByteBuffer, lengthSize: Int) throws(CodecError) -> AccessUnit {
    try NALUnits.accessUnit(payload, lengthSize: lengthSize, fate: fate)
  }

  /// An encoder's access unit, a byte stream with start codes (Annex B), as stored in a sample.
  package static func accessUnit(annexB payload: ByteBuffer) -> AccessUnit {
    NALUnits.accessUnit(annexB: payload, fate: fate)
  }

  /// ITU-T H.264 table 7-1. ISO/IEC 14496-15 §5.3.2 lists the types that are not allowed in a sample.
  private static func fate(header: NALUnitHeader) -> NALUnitFate {
    switch header.first & 31 {
    // nal_ref_idc 0: no other frame refers to this one (§7.4.1).
    case 1, 2, 3, 4: header.first & 0x60 == 0 ? .keepDisposable : .keepReference
    case 5: .keepSync
    case 6: .keepMessages(headerLength: 1)
    case 7, 8, 13: .parameterSet
    case 9, 12: .drop
    default: .keep
    }
  }

  /// `seq_parameter_set_id` or `pic_parameter_set_id`.
  private static func number(of set: [UInt8]) -> UInt32? {
    let headerLength = set.first.map { $0 & 31 == 7 ? 4 : 1 } ?? 1
    var reader = BitReader(nalUnit: Array(set.prefix(16)), headerLength: headerLength)
    return try? reader.ue("parameter set id", max: 255)
  }

  private static func sets(_ reader: inout ByteReader, count: Int) throws(CodecError) -> [[UInt8]] {
    var sets: [[UInt8]] = []
    for _ in 0..<count {
      let length = Int(try reader.u16())
      sets.append(try reader.bytes(length))
    }
    return sets
  }

  private static func check(_ sets: [[UInt8]], type: UInt8, name: StaticString, limit: Int) throws(CodecError) {
    guard sets.count <= limit else {
      throw CodecError(.invalid, "\(sets.count) times a \(name); at most \(limit) are taken")
    }
    for set in sets {
      guard let header = set.first, header & 31 == type, set.count <= maximumParameterSetSize else {
        throw CodecError(
          .invalid, "an H.264 \(name) that is a NAL unit of type \(set.first.map { $0 & 31 } ?? 0), \(set.count) bytes")
      }
    }
  }

  private static func append(_ set: [UInt8], to record: inout [UInt8]) {
    appendBigEndian(UInt16(truncatingIfNeeded: set.count), to: &record)
    record.append(contentsOf: set)
  }
}

extension H264.Configuration: Hashable {
  package static func == (a: Self, b: Self) -> Bool {
    a.sps == b.sps && a.pps == b.pps && a.spsExtensions == b.spsExtensions
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(sps)
    hasher.combine(pps)
  }
}
