internal import NIOCore

/// Header that a proxy sends first on a forwarded connection, with the client's address (the PROXY protocol,
/// haproxy.org "proxy-protocol.txt", versions 1 and 2).
enum ProxyHeader: Equatable {
  /// More bytes are needed.
  case incomplete
  /// No header: the bytes belong to the ingest protocol.
  case absent
  /// The client's address. Nil if it is the proxy's own connection, or of a family without addresses.
  case from(SocketAddress?)

  struct Malformed: Error {}

  /// Most bytes of a header, in both versions.
  static let longest = 2048
  /// Most bytes of a version 1 header with its line end (§2.1).
  private static let longestLine = 107
  private static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]

  /// Removes a header from the front of the bytes, if there is a complete one.
  static func take(from bytes: inout ByteBuffer) throws(Malformed) -> ProxyHeader {
    switch bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) {
    case nil: .incomplete
    case UInt8(ascii: "P"): try takeLine(from: &bytes)
    case signature[0]: try takeBinary(from: &bytes)
    default: .absent
    }
  }

  /// `PROXY TCP4 192.0.2.1 192.0.2.7 56324 1935`.
  private static func takeLine(from bytes: inout ByteBuffer) throws(Malformed) -> ProxyHeader {
    let view = bytes.readableBytesView.prefix(longestLine)
    guard let end = view.firstIndex(of: UInt8(ascii: "\n")) else {
      guard view.count < longestLine else { throw Malformed() }
      return .incomplete
    }
    let line = bytes.readString(length: end - view.startIndex + 1) ?? ""
    let words = line.split(separator: " ").map { $0.filter { !$0.isNewline } }
    guard line.hasSuffix("\r\n"), words.count >= 2, words[0] == "PROXY" else { throw Malformed() }
    guard words[1] != "UNKNOWN" else { return .from(nil) }
    guard words.count == 6, words[1] == "TCP4" || words[1] == "TCP6", let port = UInt16(words[4]),
      let address = try? SocketAddress(ipAddress: words[2], port: Int(port))
    else { throw Malformed() }
    return .from(address)
  }

  private static func takeBinary(from bytes: inout ByteBuffer) throws(Malformed) -> ProxyHeader {
    guard bytes.readableBytesView.starts(with: signature.prefix(bytes.readableBytes)) else { throw Malformed() }
    var rest = bytes
    rest.moveReaderIndex(forwardBy: min(signature.count, bytes.readableBytes))
    guard let command = rest.readInteger(as: UInt8.self), let family = rest.readInteger(as: UInt8.self),
      let length = rest.readInteger(as: UInt16.self)
    else { return .incomplete }
    guard command >> 4 == 2, command & 0x0F <= 1, signature.count + 4 + Int(length) <= longest else {
      throw Malformed()
    }
    guard let addresses = rest.readSlice(length: Int(length)) else { return .incomplete }
    bytes = rest
    // LOCAL: the proxy's own connection, such as a health check.
    guard command & 0x0F == 1 else { return .from(nil) }
    switch family {
    case 0x11: return .from(try address(addresses, bytes: 4))
    case 0x21: return .from(try address(addresses, bytes: 16))
    default: return .from(nil)
    }
  }

  /// The source address. The fields are the addresses of source and destination, then their ports.
  private static func address(_ fields: ByteBuffer, bytes count: Int) throws(Malformed) -> SocketAddress {
    guard let packed = fields.getSlice(at: fields.readerIndex, length: count),
      let port = fields.getInteger(at: fields.readerIndex + 2 * count, as: UInt16.self),
      let address = try? SocketAddress(packedIPAddress: packed, port: Int(port))
    else { throw Malformed() }
    return address
  }
}
