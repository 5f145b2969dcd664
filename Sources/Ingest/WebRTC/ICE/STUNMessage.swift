internal import NIOCore

/// A message of STUN (RFC 8489 §5), read. Attributes that ICE has no use for are passed over.
struct STUNMessage: Equatable {
  enum Kind: UInt16 {
    case bindingRequest = 0x0001
    case bindingIndication = 0x0011
    case bindingSuccess = 0x0101
    case bindingError = 0x0111
  }

  /// Attributes, by their numbers (RFC 8489 §18.3, RFC 8445 §20).
  enum Attribute {
    static let username: UInt16 = 0x0006
    static let messageIntegrity: UInt16 = 0x0008
    static let errorCode: UInt16 = 0x0009
    static let unknownAttributes: UInt16 = 0x000A
    static let mappedAddress: UInt16 = 0x0020
    static let priority: UInt16 = 0x0024
    static let useCandidate: UInt16 = 0x0025
    static let fingerprint: UInt16 = 0x8028
    static let controlled: UInt16 = 0x8029
    static let controlling: UInt16 = 0x802A
  }

  static let cookie: UInt32 = 0x2112_A442
  static let headerBytes = 20
  /// Longest user name (RFC 8489 §14.3).
  static let usernameBytes = 513

  let kind: Kind
  /// 12 bytes.
  let transaction: [UInt8]
  private(set) var username = ""
  private(set) var usesCandidate = false
  /// The peer says that it is controlled, as a lite agent always is.
  private(set) var isControlled = false
  /// Attributes that must be understood and are not (RFC 8489 §14).
  private(set) var unknown: [UInt16] = []
  /// Offset of the message integrity, and its 20 bytes.
  private var integrity: (offset: Int, digest: [UInt8])?
  private let bytes: [UInt8]

  static func == (a: STUNMessage, b: STUNMessage) -> Bool { a.bytes == b.bytes }

  /// Whether a datagram may be one (RFC 7983 §7).
  static func isPossible(_ first: UInt8) -> Bool { first < 4 }

  /// Reads a datagram. Nil for anything that is not exactly one message: nothing answers it.
  init?(_ datagram: ByteBuffer) {
    let size = datagram.readableBytes
    guard size >= Self.headerBytes, size <= WebRTCLimits.datagramBytes, size % 4 == 0 else { return nil }
    bytes = Array(datagram.readableBytesView)
    guard let kind = Kind(rawValue: Self.u16(bytes, 0)), Int(Self.u16(bytes, 2)) == size - Self.headerBytes,
      Self.u32(bytes, 4) == Self.cookie
    else { return nil }
    self.kind = kind
    transaction = Array(bytes[8..<20])
    var index = Self.headerBytes
    while index < size {
      guard index + 4 <= size else { return nil }
      let (type, length) = (Self.u16(bytes, index), Int(Self.u16(bytes, index + 2)))
      let start = index + 4
      guard length <= size - start else { return nil }
      guard take(type, start, length, at: index) else { return nil }
      index = start + (length + 3) / 4 * 4
    }
    guard index == size else { return nil }
  }

  /// False if the attribute is malformed. What follows the message integrity is ignored, but for the fingerprint.
  private mutating func take(_ type: UInt16, _ start: Int, _ length: Int, at index: Int) -> Bool {
    if type == Attribute.fingerprint {
      return length == 4 && start + 4 == bytes.count && Self.u32(bytes, start) == Self.checksum(bytes[..<index])
    }
    guard integrity == nil else { return true }
    switch type {
    case Attribute.username:
      guard length <= Self.usernameBytes else { return false }
      username = String(decoding: bytes[start..<start + length], as: UTF8.self)
    case Attribute.messageIntegrity:
      guard length == HMACSHA1.size else { return false }
      integrity = (index, Array(bytes[start..<start + length]))
    case Attribute.useCandidate: usesCandidate = true
    case Attribute.controlled: isControlled = true
    case Attribute.controlling, Attribute.priority: break
    default: if type < 0x8000 { unknown.append(type) }
    }
    return true
  }

  /// Whether the message was made with the password (RFC 8489 §14.5).
  func isIntact(password: String) -> Bool {
    guard let (offset, digest) = integrity else { return false }
    var covered = Array(bytes[..<offset])
    let length = UInt16(truncatingIfNeeded: offset - Self.headerBytes + 4 + HMACSHA1.size)
    covered[2] = UInt8(length >> 8)
    covered[3] = UInt8(length & 0xFF)
    return HMACSHA1.matches(covered, key: password, digest)
  }

  private static func u16(_ bytes: [UInt8], _ at: Int) -> UInt16 { UInt16(bytes[at]) << 8 | UInt16(bytes[at + 1]) }

  private static func u32(_ bytes: [UInt8], _ at: Int) -> UInt32 {
    UInt32(u16(bytes, at)) << 16 | UInt32(u16(bytes, at + 2))
  }

  /// The value of a fingerprint (RFC 8489 §14.7): CRC-32 of what stands before it.
  static func checksum(_ bytes: ArraySlice<UInt8>) -> UInt32 { CRC32.of(bytes) ^ 0x5354_554E }
}
