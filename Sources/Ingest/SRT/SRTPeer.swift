internal import Base
internal import Glibc

/// The address of a caller, read from the system's form by its offsets (ip(7), ipv6(7)). Several C modules declare its
/// fields, and the imports decide which one the compiler finds.
struct SRTPeer: Sendable, Hashable {
  var address: String
  var port: UInt16
  /// As `PublishRequest.host`.
  var host: String

  init(address: String, port: UInt16, host: String) { (self.address, self.port, self.host) = (address, port, host) }

  init?(_ address: UnsafeRawBufferPointer) {
    guard address.count >= 8 else { return nil }
    let port = UInt16(address[2]) << 8 | UInt16(address[3])
    switch Int32(address.loadUnaligned(as: sa_family_t.self)) {
    case AF_INET: self.init(NetworkAddress(v4: address[4..<8]), v6: [], port)
    case AF_INET6 where address.count >= 24:
      self.init(NetworkAddress(v6: address[8..<24]), v6: Array(address[8..<24]), port)
    default: return nil
    }
  }

  private init(_ network: NetworkAddress, v6 bytes: [UInt8], _ port: UInt16) {
    host = network.hostText
    self.port = port
    address = network.isIPv4 ? network.hostText : Self.text(bytes)
  }

  private static func text(_ bytes: [UInt8]) -> String {
    var text = [UInt8](repeating: 0, count: Int(INET6_ADDRSTRLEN))
    _ = bytes.withUnsafeBytes { bytes in
      text.withUnsafeMutableBytes {
        inet_ntop(
          AF_INET6, bytes.baseAddress, $0.assumingMemoryBound(to: CChar.self).baseAddress, socklen_t(INET6_ADDRSTRLEN))
      }
    }
    return String(decoding: text.prefix { $0 != 0 }, as: UTF8.self)
  }
}
