package import NIOCore

/// AV1 as stored by "AV1 Codec ISO Media File Format Binding" (AV1-ISOBMFF).
package enum AV1 {
  /// A track's sequence header. Two configurations are equal if their sequence headers and metadata are.
  package struct Configuration: VideoConfiguration {
    package static let id = CodecID.av1
    package static let name = "AV1"
    package static let sampleEntry: (type: FourCC, configuration: FourCC)? = ("av01", "av1C")
    package static let fileBrand: FourCC? = "av01"

    /// The sequence header OBU, with a size field.
    package let sequenceHeader: [UInt8]
    /// Other OBUs of the record (metadata: mastering display, light levels), with size fields.
    package let metadata: [[UInt8]]
    package let format: VideoFormat
    let sequence: SequenceHeader
    /// `initial_presentation_delay_minus_one` of the record. Nil if not stated.
    let presentationDelay: UInt8?

    init(sequenceHeader: [UInt8], metadata: [[UInt8]], presentationDelay: UInt8?) throws(CodecError) {
      guard sequenceHeader.count <= maximumParameterSetSize else {
        throw CodecError(.invalid, "an AV1 sequence header of \(sequenceHeader.count) bytes")
      }
      var units = OpenBitstreamUnits(ByteBuffer(bytes: sequenceHeader))
      guard let unit = try units.next(), unit.type == .sequenceHeader else {
        throw CodecError(.invalid, "AV1 without a sequence header OBU")
      }
      sequence = try SequenceHeader(payload: Array(sequenceHeader[unit.payload]))
      self.sequenceHeader = sequenceHeader
      self.metadata = metadata
      self.presentationDelay = presentationDelay
      format = sequence.format
    }

    /// Reads the OBUs of an encoder's extradata, or of a temporal unit that begins with a key frame.
    package init(stream obus: ByteBuffer) throws(CodecError) {
      try self.init(obus: obus, presentationDelay: nil)
    }

    private init(obus: ByteBuffer, presentationDelay: UInt8?) throws(CodecError) {
      var units = OpenBitstreamUnits(obus)
      var header: [UInt8]?
      var metadata: [[UInt8]] = []
      while let unit = try units.next() {
        switch unit.type {
        case .sequenceHeader where header == nil: header = units.sized(unit)
        case .metadata where metadata.count < maximumParameterSets: metadata.append(units.sized(unit))
        default: break
        }
      }
      guard let header else { throw CodecError(.invalid, "AV1 without a sequence header OBU") }
      try self.init(sequenceHeader: header, metadata: metadata, presentationDelay: presentationDelay)
    }

    /// Reads an `AV1CodecConfigurationRecord` (AV1-ISOBMFF §2.3.3).
    package init(record: ByteBuffer) throws(CodecError) {
      var reader = try ByteReader(record, name: "av1C")
      let marker = try reader.u8()
      guard marker == 0x81 else {
        throw CodecError(.unsupported, "av1C begins with \(marker); only 129 (version 1) is known", offset: 0)
      }
      _ = try reader.bytes(2)  // profile, level, formats: also in the sequence header
      let delay = try reader.u8()
      let obus = ByteBuffer(bytes: try reader.bytes(reader.remaining))
      try self.init(obus: obus, presentationDelay: delay & 16 != 0 ? delay & 15 : nil)
    }

    /// The `AV1CodecConfigurationRecord` (AV1-ISOBMFF §2.3.3).
    package func record() -> [UInt8] {
      let color = sequence.color
      var record: [UInt8] = [0x81, sequence.profile << 5 | sequence.level]
      record.append(
        bit(sequence.tier == .high, 7) | bit(color.bitDepth > 8, 6) | bit(color.bitDepth == 12, 5)
          | bit(color.chroma == .monochrome, 4) | bit(color.subsampling.x, 3) | bit(color.subsampling.y, 2)
          | color.samplePosition)
      record.append(presentationDelay.map { 16 | $0 } ?? 0)
      record.append(contentsOf: sequenceHeader)
      for unit in metadata { record.append(contentsOf: unit) }
      return record
    }

    /// "av01." with profile, level, tier and bit depth. The colours follow if they are not the default (AV1-ISOBMFF
    /// §5).
    package var codecString: String {
      let color = sequence.color
      let tier = sequence.tier == .high ? "H" : "M"
      let text = "av01.\(sequence.profile).\(twoDigits(sequence.level))\(tier).\(twoDigits(color.bitDepth))"
      let x = color.subsampling.x ? 1 : 0
      let y = color.subsampling.y ? 1 : 0
      let position = x == 1 && y == 1 ? color.samplePosition : 0
      let primaries = color.description?.primaries ?? 1
      let transfer = color.description?.transfer ?? 1
      let matrix = color.description?.matrix ?? 1
      let range = color.range == .full ? 1 : 0
      let optional =
        ".\(color.chroma == .monochrome ? 1 : 0).\(x)\(y)\(position)"
        + ".\(twoDigits(primaries)).\(twoDigits(transfer)).\(twoDigits(matrix)).\(range)"
      return optional == ".0.110.01.01.01.0" ? text : text + optional
    }

    /// The configuration with the last of these sequence headers. Nil if it is the same one or is unreadable.
    package func updated(withParameterSets sets: [[UInt8]]) -> Configuration? {
      guard let last = sets.last, last != sequenceHeader else { return nil }
      return try? Configuration(sequenceHeader: last, metadata: metadata, presentationDelay: presentationDelay)
    }

    package func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit? { try AV1.accessUnit(payload) }
    package func accessUnit(stream: ByteBuffer) throws(CodecError) -> AccessUnit? { try AV1.accessUnit(stream) }
  }

  /// A temporal unit as stored in a sample: without temporal delimiters and padding (AV1-ISOBMFF §2.4). A sequence
  /// header is kept and also returned.
  package static func accessUnit(_ payload: ByteBuffer) throws(CodecError) -> AccessUnit {
    var unit = AccessUnit(payload: payload, isSync: false, parameterSets: [])
    var units = OpenBitstreamUnits(payload)
    var kept: [Range<Int>] = []
    var dropped = false
    var seenFrame = false
    while let obu = try units.next() {
      switch obu.type {
      case .temporalDelimiter, .padding, .tileList:
        dropped = true
        continue
      case .sequenceHeader:
        if unit.parameterSets.count < maximumParameterSets, obu.payload.count <= maximumParameterSetSize {
          unit.parameterSets.append(units.sized(obu))
        }
      case .frame, .frameHeader:
        // The first frame decides: it must be a key frame that is shown (§2.5). The bits are show_existing_frame,
        // frame_type (2), show_frame.
        if !seenFrame, let first = payload.getInteger(at: payload.readerIndex &+ obu.payload.lowerBound, as: UInt8.self)
        {
          unit.isSync = first & 0b1111_0000 == 0b0001_0000
          seenFrame = true
        }
      case .metadata:
        readMetadata(
          payload.getSlice(at: payload.readerIndex &+ obu.payload.lowerBound, length: obu.payload.count), into: &unit)
      default: break
      }
      if kept.count == maximumUnits {
        throw CodecError(.invalid, "a temporal unit of more than \(maximumUnits) OBUs", offset: obu.whole.lowerBound)
      }
      kept.append(obu.whole)
    }
    guard dropped else { return unit }
    var rewritten = ByteBuffer()
    rewritten.reserveCapacity(kept.reduce(0) { $0 &+ $1.count })
    for range in kept {
      if let bytes = payload.getSlice(at: payload.readerIndex &+ range.lowerBound, length: range.count) {
        rewritten.writeImmutableBuffer(bytes)
      }
    }
    unit.payload = rewritten
    return unit
  }

  /// Most OBUs of one temporal unit. Level 6.3 allows 512 tiles and 8 operating points.
  private static let maximumUnits = 8192
}

extension AV1.Configuration: Hashable {
  package static func == (a: Self, b: Self) -> Bool {
    a.sequenceHeader == b.sequenceHeader && a.metadata == b.metadata
  }

  package func hash(into hasher: inout Hasher) {
    hasher.combine(sequenceHeader)
    hasher.combine(metadata)
  }
}

private func bit(_ isSet: Bool, _ position: UInt8) -> UInt8 {
  isSet ? 1 << position : 0
}
