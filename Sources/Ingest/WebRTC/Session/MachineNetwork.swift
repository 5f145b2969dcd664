internal import Base
internal import NIOCore

/// The addresses of this machine.
enum MachineNetwork {
  /// Those at which a listener on every address is reached: those of interfaces, or, where there are none, the loopback's.
  static func addresses(of listener: SocketAddress) -> [String] {
    let takesIPv6 = if case .v6 = listener { true } else { false }
    let all = ((try? System.enumerateDevices()) ?? []).compactMap(\.address).compactMap { address -> (String, Bool)? in
      guard let text = address.ipAddress, let host = NetworkAddress(address), host.isIPv4 || takesIPv6 else {
        return nil
      }
      // Addresses of one link cannot be told without its name.
      guard host.network >> 48 != 0xFE80 else { return nil }
      return (text, host.isIPv4 ? host.interface >> 24 & 0xFF == 127 : text == "::1")
    }
    let others = all.filter { !$0.1 }.map(\.0)
    return others.isEmpty ? all.map(\.0) : others
  }
}
