internal import Glibc
internal import NIOCore

/// The first packets of an SRT handshake (draft-sharabayko-srt-01 §3.2.1, §4.3.1.1). A listener answers it without keeping state.
enum SRTInduction {
  /// What the answer is addressed to (Destination Socket ID).
  private static let caller: [UInt8] = [0x00, 0x77, 0x65, 0x69]
  private static let bytes = 64
  private static let tries = 3
  /// In milliseconds.
  private static let patience: CInt = 1000

  static let request: [UInt8] = {
    let header: [UInt8] = [0x80, 0, 0, 0] + [UInt8](repeating: 0, count: 12)
    // Version 4, extension field 2; sequence number; MTU 1500; flow window 8192; type 1, which is induction.
    let fields: [UInt8] = [0, 0, 0, 4, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0x05, 0xDC, 0, 0, 0x20, 0, 0, 0, 0, 1]
    // No cookie yet, and no address.
    return header + fields + caller + [UInt8](repeating: 0, count: 20)
  }()

  /// Whether these bytes answer the request: a handshake of control packets, to its socket.
  static func isAnswer(_ packet: some Collection<UInt8>) -> Bool {
    packet.count >= bytes && Array(packet.prefix(2)) == [0x80, 0] && Array(packet.dropFirst(12).prefix(4)) == caller
  }

  /// Asks an address, and waits up to three seconds. `host` is an IP address.
  static func isAnswered(by host: String, _ port: UInt16) -> Bool {
    guard let address = try? SocketAddress(ipAddress: host, port: Int(port)) else { return false }
    let family = address.protocol == .inet6 ? AF_INET6 : AF_INET
    let socket = socket(family, CInt(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard socket >= 0 else { return false }
    defer { close(socket) }
    // A connected socket is told where nobody listens.
    guard address.withSockAddr({ connect(socket, .init(__sockaddr__: $0), socklen_t($1)) }) == 0 else { return false }
    for _ in 0..<tries {
      guard send(socket, request, request.count, 0) == request.count else { return false }
      var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
      guard poll(&waiting, 1, patience) > 0 else { continue }
      var packet = [UInt8](repeating: 0, count: 1500)
      let count = recv(socket, &packet, packet.count, 0)
      guard count >= 0 else { return false }
      if isAnswer(packet.prefix(count)) { return true }
    }
    return false
  }
}
