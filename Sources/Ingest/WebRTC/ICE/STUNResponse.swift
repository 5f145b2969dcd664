internal import Base
internal import NIOCore

/// Responses of a lite agent, as bytes, and the one request that it sends.
enum STUNResponse {
  /// The address that a request came from, as its bytes and port.
  struct Place: Hashable {
    var address: NetworkAddress
    var port: UInt16
    /// By UDP: the ports of TCP are others.
    var isDatagram = true
  }

  /// RFC 8489 §14.2: the address, masked so that nothing on the way changes it.
  static func success(to request: STUNMessage, from place: Place, password: String) -> ByteBuffer {
    var value: [UInt8] = [0, place.address.isIPv4 ? 1 : 2]
    let mask = bytes(STUNMessage.cookie) + request.transaction
    value += bytes(place.port ^ UInt16(STUNMessage.cookie >> 16))
    let whole = bytes(place.address.network) + bytes(place.address.interface)
    let address = place.address.isIPv4 ? Array(whole.suffix(4)) : whole
    value += zip(address, mask).map { $0 ^ $1 }
    return finish(.bindingSuccess, request.transaction, [(STUNMessage.Attribute.mappedAddress, value)], password)
  }

  /// RFC 8489 §14.8: a number from 300 to 699. `unknown` are attributes that were not understood (420).
  static func error(
    _ code: Int, _ reason: String, to request: STUNMessage, unknown: [UInt16] = [], password: String
  ) -> ByteBuffer {
    let error = [0, 0, UInt8(clamping: code / 100), UInt8(clamping: code % 100)] + Array(reason.utf8.prefix(32))
    var attributes = [(STUNMessage.Attribute.errorCode, error)]
    if !unknown.isEmpty {
      attributes.append((STUNMessage.Attribute.unknownAttributes, unknown.prefix(4).flatMap { bytes($0) }))
    }
    return finish(.bindingError, request.transaction, attributes, password)
  }

  /// Asks a peer whether an address is its own (RFC 7675 §5.1): who does not get the request cannot answer it.
  ///
  /// - Parameters:
  ///   - username: the peer's fragment, a colon, and the own one.
  ///   - password: the peer's.
  static func check(_ transaction: [UInt8], username: String, password: String) -> ByteBuffer {
    let priority: UInt32 = 0x6E00_01FF
    return finish(
      .bindingRequest, transaction,
      [
        (STUNMessage.Attribute.username, Array(username.utf8)),
        (STUNMessage.Attribute.priority, bytes(priority)),
        (STUNMessage.Attribute.controlled, bytes(UInt64.random(in: .min ... .max))),
      ], password)
  }

  private static func finish(
    _ kind: STUNMessage.Kind, _ transaction: [UInt8], _ attributes: [(type: UInt16, value: [UInt8])], _ password: String
  ) -> ByteBuffer {
    var body: [UInt8] = []
    for attribute in attributes { body += encode(attribute.type, attribute.value) }
    func head(_ more: Int) -> [UInt8] {
      bytes(kind.rawValue) + bytes(UInt16(clamping: body.count + more)) + bytes(STUNMessage.cookie) + transaction
    }
    let digest = HMACSHA1.of(head(4 + HMACSHA1.size) + body, key: password)
    body += encode(STUNMessage.Attribute.messageIntegrity, digest)
    let checksum = STUNMessage.checksum((head(8) + body)[...])
    body += encode(STUNMessage.Attribute.fingerprint, bytes(checksum))
    return ByteBuffer(bytes: head(0) + body)
  }

  private static func encode(_ type: UInt16, _ value: [UInt8]) -> [UInt8] {
    let padding = [UInt8](repeating: 0, count: (4 - value.count % 4) % 4)
    return bytes(type) + bytes(UInt16(clamping: value.count)) + value + padding
  }

  private static func bytes(_ value: some FixedWidthInteger) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }
}
