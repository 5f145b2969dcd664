internal import NIOCore

/// Puts the sections of one PID together from the payloads of its packets (ISO/IEC 13818-1 §2.4.4.1). Several sections
/// may share a packet, and one may span several.
struct PSISectionReader {
  /// Sections with a wrong checksum, or of a length that does not exist.
  private(set) var damaged = 0
  /// The section that has begun. Empty while none has.
  private var section = ByteBuffer()
  private var hasBegun = false

  private static let stuffing: UInt8 = 0xFF

  /// Drops the section that has begun: a packet is missing.
  mutating func dropUnfinished() {
    section.clear()
    hasBegun = false
  }

  /// Takes the payload of the next packet. Returns the sections that it completes.
  mutating func receive(_ payload: ByteBuffer, isUnitStart: Bool) -> [PSISection] {
    var rest = payload
    var found: [PSISection] = []
    guard isUnitStart else {
      take(&rest, to: &found)
      return found
    }
    guard let pointer: UInt8 = rest.readInteger(), var end = rest.readSlice(length: Int(pointer)) else {
      damaged &+= 1
      dropUnfinished()
      return found
    }
    take(&end, to: &found)
    if hasBegun {
      damaged &+= 1
      dropUnfinished()
    }
    while rest.readableBytes > 0, rest.getInteger(at: rest.readerIndex) != Self.stuffing {
      hasBegun = true
      take(&rest, to: &found)
    }
    return found
  }

  /// Adds bytes to the section that has begun, up to its end.
  private mutating func take(_ bytes: inout ByteBuffer, to found: inout [PSISection]) {
    while hasBegun {
      let wanted = (length ?? PSISection.headerBytes) &- section.readableBytes
      guard wanted > 0, let part = bytes.readSlice(length: min(wanted, bytes.readableBytes)), part.readableBytes > 0
      else { return }
      section.writeImmutableBuffer(part)
      guard let length else { continue }
      guard length <= MPEGTSLimits.sectionBytes else {
        damaged &+= 1
        dropUnfinished()
        // Where the next section begins cannot be known before the next packet that says so.
        bytes.clear()
        return
      }
      guard section.readableBytes >= length else { continue }
      if let whole = PSISection(section) { found.append(whole) } else { damaged &+= 1 }
      section = ByteBuffer()
      hasBegun = false
    }
  }

  /// Bytes of the whole section; nil before its length has come.
  private var length: Int? {
    let field: UInt16? = section.getInteger(at: section.readerIndex &+ 1)
    return field.map { PSISection.headerBytes &+ Int($0 & 0xFFF) }
  }
}
