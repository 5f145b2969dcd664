internal import CSRT
internal import Glibc
package import NIOCore

/// UDP sockets of the system, for a worker.
package enum UDPSocket {
  /// A bound socket. An IPv6 address takes IPv4, too. Throws the system's error.
  package static func bind(_ address: SocketAddress) throws -> Int32 {
    let isIPv6 = address.protocol == .inet6
    let kind = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
    let udp = socket(isIPv6 ? AF_INET6 : AF_INET, kind, 0)
    guard udp >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
    var (size, both) = (SRTLimits.socketBuffer, Int32(0))
    setsockopt(udp, SOL_SOCKET, SO_RCVBUF, &size, 4)
    if isIPv6 { setsockopt(udp, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &both, 4) }
    let code = address.withSockAddr { address, size in weir_bind(udp, address, UInt32(size)) }
    guard code == 0 else {
      let error = IOError(errnoCode: errno, reason: "bind")
      close(udp)
      throw error
    }
    return udp
  }

  /// Where a socket is bound.
  static func address(of udp: Int32) throws -> SocketAddress {
    var bytes = [UInt8](repeating: 0, count: 128)
    var size = UInt32(bytes.count)
    let code = weir_socket_name(udp, &bytes, &size)
    guard code == 0 else { throw IOError(errnoCode: errno, reason: "getsockname") }
    guard let peer = bytes.withUnsafeBytes({ SRTPeer($0) }) else { throw ChannelError.unknownLocalAddress }
    return try SocketAddress(ipAddress: peer.address, port: Int(peer.port))
  }

  /// Takes the next datagram out of the socket unless it is wanted by its first bytes, at most 64, and its length. Returns whether it
  /// did, or there was none.
  static func dropsNext(_ udp: Int32, unless isWanted: (_ first: Span<UInt8>, _ length: Int) -> Bool) -> Bool {
    var first = [UInt8](repeating: 0, count: 64)
    let peek = Int32(MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT)
    let length = recv(udp, &first, first.count, peek)
    if length >= 0 {
      if isWanted(first.span.extracting(first: min(length, first.count)), length) { return false }
      recv(udp, &first, first.count, Int32(MSG_DONTWAIT))
    } else if errno != EAGAIN, errno != EINTR, errno != ECONNREFUSED {
      return false
    }
    return true
  }
}
