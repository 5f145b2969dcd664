package import NIOCore

/// A payload of H.264 or HEVC from a container whose NAL units should stand behind their lengths (ISO/IEC 14496-15 §5.3.2), and what
/// it is a part of. Some publishers send start codes instead (Annex B), or several NAL units with start codes between them behind
/// one length, or bytes behind the last NAL unit. Then it is written anew.
package struct FramedNALUnits {
  /// The payload with proper lengths. The same buffer if nothing had to change.
  package private(set) var payload: ByteBuffer
  /// The part of a frame that begins with it. Nil if it has no NAL unit that belongs to one.
  package private(set) var beginning: NALUnitRole?
  /// It has a slice of a frame.
  package private(set) var hasSlice = false
  /// No NAL unit was found, or none that is whole: it cannot be read.
  package private(set) var isEmpty = true

  /// Fewer bytes are no NAL unit: a header and something behind it.
  private static let leastUnit = 2

  /// - Parameter lengthSize: bytes of a length: 1, 2 or 4.
  package init(_ payload: ByteBuffer, of codec: any CodecConfiguration.Type, lengthSize: Int) {
    self.payload = payload
    let units = Self.units(payload, of: codec, lengthSize: lengthSize)
    if !units.areFramed, !units.ranges.isEmpty {
      self.payload = Self.written(units.ranges, of: payload, lengthSize: lengthSize) ?? payload
    }
    for unit in units.ranges where !hasSlice {
      guard let role = codec.role(ofUnitAt: unit.lowerBound, in: payload) ?? Self.role(of: unit, payload, codec) else {
        continue
      }
      isEmpty = false
      switch role {
      case .first: (beginning, hasSlice) = (beginning ?? .first, true)
      case .slice: (beginning, hasSlice) = (beginning ?? .slice, true)
      case .leading: beginning = beginning ?? .leading
      case .other: break
      }
    }
  }

  /// The role of a NAL unit that ends before its role is read: as the end of a sequence may. Nil: of a slice more is needed.
  private static func role(
    of unit: Range<Int>, _ payload: ByteBuffer, _ codec: any CodecConfiguration.Type
  ) -> NALUnitRole? {
    guard var bytes = payload.getSlice(at: payload.readerIndex &+ unit.lowerBound, length: unit.count)
    else { return nil }
    bytes.writeRepeatingByte(0, count: leastUnit)
    let role = codec.role(ofUnitAt: 0, in: bytes)
    return role == .other || role == .leading ? role : nil
  }

  /// A payload begins with a start code of three or four bytes.
  package static func hasStartCode(_ payload: ByteBuffer) -> Bool {
    let bytes = payload.readableBytesUInt8Span
    guard bytes.count >= 4, bytes[0] == 0, bytes[1] == 0 else { return false }
    return bytes[2] == 1 || bytes[2] == 0 && bytes[3] == 1
  }

  /// The NAL units of a payload by their offsets, and whether each stands behind its own length, with nothing beside them.
  private static func units(
    _ payload: ByteBuffer, of codec: any CodecConfiguration.Type, lengthSize: Int
  ) -> (ranges: [Range<Int>], areFramed: Bool) {
    var reader = LengthPrefixedNALUnits(payload, lengthSize: lengthSize)
    let base = payload.readerIndex
    var (ranges, areFramed, end): ([Range<Int>], Bool, Int) = ([], true, 0)
    do throws(CodecError) {
      while let (index, length) = try reader.next() {
        end = index &- base &+ length
        let range = index &- base..<end
        let pieces = split(range, of: payload, codec)
        if pieces != nil { areFramed = false } else if length > 0 { ranges.append(range) }
        ranges.append(contentsOf: pieces ?? [])
      }
    } catch {
      areFramed = false
      if lengthSize == 4, end > 0, isStream(payload, codec) {
        return (split(0..<payload.readableBytes, of: payload, codec) ?? [], false)
      }
      // A start code of four bytes looks like the length of one byte.
      if lengthSize == 4, let place = ranges.firstIndex(where: { $0.count == 1 }) {
        end = ranges[place].lowerBound &- lengthSize
        ranges.removeSubrange(place...)
      }
      // What stands behind the last unit is none, unless it has a start code.
      let rest = end..<payload.readableBytes
      if let bytes = payload.getSlice(at: base &+ rest.lowerBound, length: rest.count), hasStartCode(bytes) {
        ranges.append(contentsOf: split(rest, of: payload, codec) ?? [])
      }
    }
    return (ranges, areFramed)
  }

  /// A payload whose lengths do not hold begins with a start code of three bytes and a header, which looks like a length of 256 to
  /// 511. It is a length if a header follows it, and the NAL unit behind it has no start code.
  private static func isStream(_ payload: ByteBuffer, _ codec: any CodecConfiguration.Type) -> Bool {
    let isHEVC = codec == HEVC.Configuration.self
    guard let start: UInt32 = payload.getInteger(at: payload.readerIndex), start >> 8 == 1,
      isHeader(at: 3, of: payload, isHEVC: isHEVC)
    else { return false }
    let unit = 4..<min(4 &+ Int(start), payload.readableBytes)
    return !isHeader(at: 4, of: payload, isHEVC: isHEVC) || split(unit, of: payload, codec) != nil
  }

  /// Whether a NAL unit of a type that frames have may begin so (ITU-T H.264 §7.4.1, H.265 §7.4.2.2).
  private static func isHeader(at offset: Int, of payload: ByteBuffer, isHEVC: Bool) -> Bool {
    guard let header: UInt16 = payload.getInteger(at: payload.readerIndex &+ offset) else { return false }
    if isHEVC {
      // The forbidden bit and the layer are 0, the temporal layer is not.
      guard header & 0x81F8 == 0, header & 7 != 0 else { return false }
      return [0...9, 16...21, 32...40].contains { $0.contains(header >> 9) }
    }
    let isReference = header & 0x6000 != 0
    return switch header >> 8 & 0x9F {
    case 1, 14, 19, 20: true
    case 5, 7, 8, 15: isReference
    case 6, 9...12: !isReference
    default: false
    }
  }

  /// The NAL units between the start codes of a range. Nil if it has none: a NAL unit has no start code within itself.
  private static func split(
    _ range: Range<Int>, of payload: ByteBuffer, _ codec: any CodecConfiguration.Type
  ) -> [Range<Int>]? {
    let isHEVC = codec == HEVC.Configuration.self
    let codes = startCodes(endOfMessages(range, of: payload, isHEVC: isHEVC)..<range.upperBound, of: payload)
    guard let first = codes.first else { return nil }
    let starts = [range.lowerBound] + codes.map { $0 &+ 3 }
    return zip(starts, [first] + codes.dropFirst() + [range.upperBound]).compactMap { start, code in
      var end = code
      while end > start, payload.getInteger(at: payload.readerIndex &+ end &- 1) == UInt8(0) { end &-= 1 }
      return end &- start >= leastUnit ? start..<end : nil
    }
  }

  /// Where the messages of a unit of supplemental information end, by their sizes (ITU-T H.264 §7.3.2.3, H.265 §7.3.2.4): some are
  /// written without emulation prevention, and bytes within them are no start code. The start of any other unit.
  private static func endOfMessages(_ range: Range<Int>, of payload: ByteBuffer, isHEVC: Bool) -> Int {
    let bytes = payload.readableBytesUInt8Span
    let upper = min(range.upperBound, bytes.count)
    guard range.lowerBound < upper else { return range.lowerBound }
    let header = bytes[range.lowerBound]
    guard isHEVC ? (39...40).contains(header >> 1 & 63) : header & 31 == 6 else { return range.lowerBound }
    var end = range.lowerBound &+ (isHEVC ? 2 : 1)
    // What follows the last message, its trailing bits or a start code, has a zero behind or in it.
    while end &+ 1 < upper, bytes[end &+ 1] != 0 || bytes[end] != 0 && bytes[end] != 0x80 {
      var (place, number) = (end, 0)
      // The type, then the size.
      for _ in 0..<2 {
        number = 0
        var byte = UInt8.max
        while byte == .max {
          guard place < upper else { return end }
          byte = bytes[place]
          number &+= Int(byte)
          place &+= 1
        }
      }
      guard number <= upper &- place else { return end }
      end = place &+ number
    }
    return min(end, upper)
  }

  /// The offsets of the start codes of three bytes in a range.
  private static func startCodes(_ range: Range<Int>, of payload: ByteBuffer) -> [Int] {
    let bytes = payload.readableBytesUInt8Span
    var codes: [Int] = []
    var third = range.lowerBound &+ 2
    while third < min(range.upperBound, bytes.count) {
      // Most bytes are above 1. Then no start code ends here or at the next two bytes.
      switch bytes[third] {
      case 0: third &+= 1
      case 1:
        if bytes[third &- 1] == 0, bytes[third &- 2] == 0 { codes.append(third &- 2) }
        third &+= 3
      default: third &+= 3
      }
    }
    return codes
  }

  /// Nil if a unit is too long for its length.
  private static func written(_ units: [Range<Int>], of payload: ByteBuffer, lengthSize: Int) -> ByteBuffer? {
    var written = ByteBuffer()
    written.reserveCapacity(payload.readableBytes &+ units.count &* lengthSize)
    for unit in units {
      guard let bytes = payload.getSlice(at: payload.readerIndex &+ unit.lowerBound, length: unit.count) else {
        return nil
      }
      switch lengthSize {
      case 1:
        guard let length = UInt8(exactly: unit.count) else { return nil }
        written.writeInteger(length)
      case 2:
        guard let length = UInt16(exactly: unit.count) else { return nil }
        written.writeInteger(length)
      default: written.writeInteger(UInt32(truncatingIfNeeded: unit.count))
      }
      written.writeImmutableBuffer(bytes)
    }
    return written
  }
}
