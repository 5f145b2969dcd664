internal import NIOCore

/// One section of program-specific information, complete and with a correct checksum (ISO/IEC 13818-1 §2.4.4). A private
/// section in short form has no checksum.
struct PSISection {
  let tableID: UInt8
  /// The fields of the long form; nil in the short one.
  let long: LongForm?
  /// The whole section, from its table_id to the last byte before the checksum.
  let bytes: ByteBuffer

  struct LongForm: Hashable {
    /// The programme's number in a program map, the stream's number in a program association.
    var tableExtension: UInt16
    /// 5 bits.
    var version: UInt8
    /// False for a table that is announced for later.
    var isCurrent: Bool
    var number: UInt8
    var last: UInt8
  }

  static let headerBytes = 3
  private static let longHeaderBytes = 8
  private static let checksumBytes = 4
  /// Tables of SCTE 35 §9.6 have the short form, and a checksum.
  static let spliceTable: UInt8 = 0xFC

  /// Nil if the checksum is wrong, or if the section is too short for its form.
  init?(_ section: ByteBuffer) {
    guard let table: UInt8 = section.getInteger(at: section.readerIndex),
      let flags: UInt8 = section.getInteger(at: section.readerIndex &+ 1)
    else { return nil }
    tableID = table
    let isLong = flags & 0x80 != 0
    guard isLong || table == Self.spliceTable else {
      long = nil
      bytes = section
      return
    }
    let least = (isLong ? Self.longHeaderBytes : Self.headerBytes) &+ Self.checksumBytes
    // The remainder over a whole section, checksum included, is zero.
    guard section.readableBytes >= least, MPEGChecksum.of(section) == 0 else { return nil }
    var rest = section
    bytes = rest.readSlice(length: section.readableBytes &- Self.checksumBytes) ?? section
    var header = bytes
    header.moveReaderIndex(forwardBy: Self.headerBytes)
    guard isLong, let number: UInt16 = header.readInteger(), let version: UInt8 = header.readInteger(),
      let section: UInt8 = header.readInteger(), let last: UInt8 = header.readInteger()
    else {
      long = nil
      return
    }
    long = LongForm(
      tableExtension: number, version: version >> 1 & 31, isCurrent: version & 1 != 0, number: section, last: last)
  }

  /// The whole section as it came. Not for a private section in short form.
  var whole: [UInt8] {
    var whole = bytes
    whole.writeInteger(MPEGChecksum.of(bytes))
    return Array(buffer: whole)
  }

  /// What follows the header.
  var body: ByteBuffer {
    var body = bytes
    body.moveReaderIndex(
      forwardBy: min(long == nil ? Self.headerBytes : Self.longHeaderBytes, body.readableBytes))
    return body
  }
}

/// The CRC of program-specific information (ISO/IEC 13818-1 annex A).
enum MPEGChecksum {
  private static let table: [UInt32] = (0..<256).map { index in
    var value = UInt32(index) << 24
    for _ in 0..<8 { value = value & 0x8000_0000 != 0 ? value << 1 ^ 0x04C1_1DB7 : value << 1 }
    return value
  }

  static func of(_ bytes: ByteBuffer) -> UInt32 {
    bytes.readableBytesView.reduce(.max) { $0 << 8 ^ table[Int($0 >> 24 ^ UInt32($1)) & 255] }
  }
}
