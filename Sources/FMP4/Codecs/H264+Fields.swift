package import NIOCore

extension H264 {
  /// One field of interlaced video, coded as a picture of its own (ITU-T H.264 §7.4.3).
  package struct Field: Sendable, Hashable {
    let isBottom: Bool
    let frameNumber: UInt32
    let isReference: Bool
    let isInstantaneousRefresh: Bool

    /// Whether it is the second field of the frame that `first` begins (§3.30, §3.31).
    package func completes(_ first: Field) -> Bool {
      isBottom != first.isBottom && frameNumber == first.frameNumber && isReference == first.isReference
        && !isInstantaneousRefresh
    }
  }

  /// What slice headers need of a sequence parameter set, so that fields are recognised (§7.3.3).
  package struct FieldSyntax: Sendable, Hashable {
    let frameNumberBits: Int
    let hasSeparatePlanes: Bool

    /// Bytes of a slice that hold the fields of its header that are read.
    private static let headerBytes = 24

    /// Nil if the set allows frames only, or is unreadable.
    package init?(sequenceParameters: [UInt8]) {
      guard let syntax = try? SequenceParameters(sequenceParameters).fieldSyntax else { return nil }
      self = syntax
    }

    init(frameNumberBits: Int, hasSeparatePlanes: Bool) {
      self.frameNumberBits = frameNumberBits
      self.hasSeparatePlanes = hasSeparatePlanes
    }

    /// The field of an access unit whose NAL units have lengths of four bytes. Nil if it is a frame.
    package func field(of payload: ByteBuffer) -> Field? {
      var units = LengthPrefixedNALUnits(payload, lengthSize: 4)
      while let unit = try? units.next() {
        guard let header: UInt8 = payload.getInteger(at: unit.index), [1, 5].contains(header & 31) else { continue }
        let bytes = payload.getBytes(at: unit.index, length: min(unit.length, Self.headerBytes)) ?? []
        return try? field(bytes, header)
      }
      return nil
    }

    private func field(_ slice: [UInt8], _ header: UInt8) throws(CodecError) -> Field? {
      var reader = BitReader(nalUnit: slice, headerLength: 1)
      _ = try reader.ue("first_mb_in_slice")
      _ = try reader.ue("slice_type", max: 9)
      _ = try reader.ue("pic_parameter_set_id", max: 255)
      if hasSeparatePlanes { try reader.skip(2) }
      let number = try reader.bits(frameNumberBits)
      guard try reader.flag() else { return nil }
      return Field(
        isBottom: try reader.flag(), frameNumber: number, isReference: header & 0x60 != 0,
        isInstantaneousRefresh: header & 31 == 5)
    }
  }
}
