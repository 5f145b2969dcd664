internal import NIOCore

extension AV1 {
  /// `obu_type`, AV1 §6.2.2.
  enum UnitType: UInt8 {
    case sequenceHeader = 1
    case temporalDelimiter = 2
    case frameHeader = 3
    case tileGroup = 4
    case metadata = 5
    case frame = 6
    case redundantFrameHeader = 7
    case tileList = 8
    case padding = 15
  }

  /// Iterates over the OBUs of a temporal unit in the low-overhead format (AV1 §5.3). Reads headers only.
  struct OpenBitstreamUnits {
    /// Byte ranges of an OBU and its payload, from the start of the buffer.
    struct Unit {
      /// Nil for a reserved type.
      var type: UnitType?
      var whole: Range<Int>
      var payload: Range<Int>
    }

    private let buffer: ByteBuffer
    private var offset = 0

    init(_ buffer: ByteBuffer) {
      self.buffer = buffer
    }

    /// The next OBU; nil at the end. Only the last OBU may have no size field; it extends to the end.
    mutating func next() throws(CodecError) -> Unit? {
      let start = offset
      let end = buffer.readableBytes
      guard start < end else { return nil }
      var index = start
      let header = try byte(at: &index)
      guard header & 0x80 == 0 else { throw CodecError(.invalid, "obu_forbidden_bit is set", offset: start) }
      if header & 4 != 0 { _ = try byte(at: &index) }  // extension header
      var size = end &- index
      if header & 2 != 0 {
        let stated = try leb128(at: &index)
        guard stated <= UInt64(end &- index) else {
          throw CodecError(
            .truncated, "an OBU of \(stated) bytes, of which \(end &- index) are there", offset: start)
        }
        size = Int(truncatingIfNeeded: stated)
      } else {
        size = end &- index
      }
      offset = index &+ size
      return Unit(
        type: UnitType(rawValue: header >> 3 & 15), whole: start..<offset, payload: index..<offset)
    }

    /// The OBU's bytes. Adds a size field if it has none (AV1-ISOBMFF §2.3.4 requires one).
    func sized(_ unit: Unit) -> [UInt8] {
      guard let bytes = buffer.getBytes(at: buffer.readerIndex &+ unit.whole.lowerBound, length: unit.whole.count),
        let header = bytes.first, header & 2 == 0
      else { return bytes(of: unit.whole) }
      let headerLength = header & 4 == 0 ? 1 : 2
      var result: [UInt8] = [header | 2]
      if headerLength == 2 { result.append(contentsOf: bytes.dropFirst().prefix(1)) }
      var size = unit.payload.count
      repeat {
        let low = UInt8(truncatingIfNeeded: size & 127)
        size >>= 7
        result.append(size == 0 ? low : low | 128)
      } while size > 0
      result.append(contentsOf: bytes.dropFirst(headerLength))
      return result
    }

    private func bytes(of range: Range<Int>) -> [UInt8] {
      buffer.getBytes(at: buffer.readerIndex &+ range.lowerBound, length: range.count) ?? []
    }

    private func byte(at index: inout Int) throws(CodecError) -> UInt8 {
      guard index < buffer.readableBytes,
        let byte = buffer.getInteger(at: buffer.readerIndex &+ index, as: UInt8.self)
      else { throw CodecError(.truncated, "the temporal unit ends within an OBU's header", offset: index) }
      index &+= 1
      return byte
    }

    /// leb128(), AV1 §4.10.5: at most eight bytes.
    private func leb128(at index: inout Int) throws(CodecError) -> UInt64 {
      var value: UInt64 = 0
      for shift in stride(from: UInt64(0), to: 56, by: 7) {
        let next = try byte(at: &index)
        value |= UInt64(next & 127) << shift
        if next & 128 == 0 { return value }
      }
      throw CodecError(.invalid, "an OBU's size has more than eight bytes", offset: index)
    }
  }
}
