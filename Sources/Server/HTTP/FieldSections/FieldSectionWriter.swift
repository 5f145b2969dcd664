internal import NIOCore

/// Encodes the field section of a response (RFC 7541). It adds nothing to the client's table: the bytes are then the same for
/// all connections, and a connection needs no table of what it has sent.
struct FieldSectionWriter {
  private(set) var bytes = ByteBuffer()

  init(status: Int) {
    bytes.reserveCapacity(256)
    let text = String(status)
    if let index = StaticFields.index(ofStatus: text) {
      bytes.writeInteger(0x80 | UInt8(index))
    } else {
      write(StaticFields.status, bits: 4)
      write(text)
    }
  }

  /// `name` is in lower case.
  mutating func add(_ name: String, _ value: String) {
    if let index = StaticFields.index(of: name) {
      write(index, bits: 4)
    } else {
      bytes.writeInteger(UInt8(0))
      write(name)
    }
    write(value)
  }

  private mutating func write(_ text: String) {
    write(text.utf8.count, bits: 7)
    bytes.writeString(text)
  }

  /// A number whose first byte has so many bits of it, the others 0 (RFC 7541 §5.1).
  private mutating func write(_ value: Int, bits: Int) {
    let mask = 1 << bits - 1
    guard value >= mask else { return _ = bytes.writeInteger(UInt8(value)) }
    bytes.writeInteger(UInt8(mask))
    var rest = value - mask
    while rest >= 0x80 {
      bytes.writeInteger(UInt8(rest & 0x7F | 0x80))
      rest >>= 7
    }
    bytes.writeInteger(UInt8(rest))
  }
}
