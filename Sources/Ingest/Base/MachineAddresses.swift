internal import Glibc

/// The addresses by which other machines reach this one.
package enum MachineAddresses {
  /// IPv4 and IPv6 addresses as text, without those of this machine alone (127.0.0.1) or of one cable (link-local). Those of the
  /// interface with the default route come first, and IPv4 before IPv6.
  package static func all() -> [String] {
    var list: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&list) == 0 else { return [] }
    defer { freeifaddrs(list) }
    let route = defaultInterface()
    var found: [(rank: Int, text: String)] = []
    var next = list
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let address = entry.ifa_addr, let name = entry.ifa_name,
        entry.ifa_flags & UInt32(IFF_UP) != 0, entry.ifa_flags & UInt32(IFF_LOOPBACK) == 0,
        let text = text(of: address)
      else { continue }
      let isFirst = String(cString: name) == route
      found.append(((isFirst ? 0 : 2) + (text.contains(":") ? 1 : 0), text))
    }
    return found.enumerated().sorted { ($0.element.rank, $0.offset) < ($1.element.rank, $1.offset) }.map(\.element.text)
  }

  /// Nil for another family, and for an address that reaches no further than one cable.
  private static func text(of address: UnsafeMutablePointer<sockaddr>) -> String? {
    let size: Int
    switch CInt(address.pointee.sa_family) {
    case AF_INET: size = MemoryLayout<sockaddr_in>.size
    case AF_INET6: size = MemoryLayout<sockaddr_in6>.size
    default: return nil
    }
    var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
    guard getnameinfo(address, socklen_t(size), &host, socklen_t(host.count), nil, 0, NI_NUMERICHOST) == 0 else {
      return nil
    }
    let text = String(decoding: host.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return text.hasPrefix("169.254.") || text.hasPrefix("fe80:") ? nil : text
  }

  /// The interface of the route to everywhere (IPv4).
  private static func defaultInterface() -> String? {
    for line in (KernelFile.text("/proc/net/route") ?? "").split(separator: "\n").dropFirst() {
      let fields = line.split(separator: "\t")
      if fields.count > 7, fields[1] == "00000000", fields[7] == "00000000" { return String(fields[0]) }
    }
    return nil
  }
}
