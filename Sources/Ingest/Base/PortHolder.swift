internal import Glibc

/// The program that has a port of this machine, as far as /proc tells this user (proc(5)).
package struct PortHolder: Sendable, Hashable, CustomStringConvertible {
  package enum Transport: Sendable {
    case tcp, udp

    /// The tables of sockets for IPv4 and IPv6.
    fileprivate var tables: [String] {
      switch self {
      case .tcp: ["/proc/net/tcp", "/proc/net/tcp6"]
      case .udp: ["/proc/net/udp", "/proc/net/udp6"]
      }
    }

    /// The state of a socket that has the port, in hexadecimal: TCP_LISTEN, and TCP_CLOSE for a UDP socket without a peer.
    fileprivate var state: Substring {
      switch self {
      case .tcp: "0A"
      case .udp: "07"
      }
    }
  }

  /// Nil for a process of another user, which only root may look into.
  package let process: Int32?
  /// The command, or the user whom the socket belongs to.
  package let name: String

  package var description: String {
    process.map { "pid \($0) (\(LogText.escaped(name)))" } ?? "a program of user \(LogText.escaped(name))"
  }

  /// The holder of a port; nil if the port is free, or nothing is known.
  package static func of(_ port: UInt16, _ transport: Transport) -> PortHolder? {
    let sockets = sockets(at: port, transport)
    guard let first = sockets.first else { return nil }
    let links = Set(sockets.map { "socket:[\($0.inode)]" })
    let holders = numbers(in: "/proc").filter { process in
      numbers(in: "/proc/\(process)/fd").contains { links.contains(link("/proc/\(process)/fd/\($0)")) }
    }
    // The service manager keeps sockets that it passed on. Of a master and its workers, the master is the oldest.
    guard let process = holders.first(where: { $0 != 1 }) ?? holders.first else {
      return PortHolder(process: nil, name: userName(first.user))
    }
    let command = KernelFile.text("/proc/\(process)/comm")?.split(separator: "\n").first.map(String.init)
    return PortHolder(process: process, name: command ?? "?")
  }

  /// Whether a program has the port.
  package static func isTaken(_ port: UInt16, _ transport: Transport) -> Bool {
    !sockets(at: port, transport).isEmpty
  }

  /// The sockets with the port: their inode and the number of their user.
  private static func sockets(at port: UInt16, _ transport: Transport) -> [(inode: Substring, user: uid_t)] {
    transport.tables.flatMap { table in
      // The kernel lists sockets that listen first, so that a table of many connections need not be read whole.
      (KernelFile.text(table) ?? "").split(separator: "\n").dropFirst().compactMap { line in
        let fields = line.split(separator: " ", maxSplits: 10)
        guard fields.count > 9, fields[3] == transport.state,
          let colon = fields[1].lastIndex(of: ":"),
          UInt16(fields[1][fields[1].index(after: colon)...], radix: 16) == port, let user = uid_t(fields[7])
        else { return nil }
        return (fields[9], user)
      }
    }
  }

  /// The numeric names in a folder of /proc, in ascending order.
  private static func numbers(in folder: String) -> [pid_t] {
    guard let entries = opendir(folder) else { return [] }
    defer { closedir(entries) }
    var found: [pid_t] = []
    while let entry = readdir(entries) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if let number = pid_t(name) { found.append(number) }
    }
    return found.sorted()
  }

  private static func link(_ path: String) -> String {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { room in
      room.withMemoryRebound(to: CChar.self) { room in
        room.baseAddress.map { readlink(path, $0, room.count) } ?? 0
      }
    }
    return count > 0 ? String(decoding: bytes.prefix(count), as: UTF8.self) : ""
  }

  /// The name of a user, or its number.
  private static func userName(_ user: uid_t) -> String {
    var (entry, found) = (passwd(), UnsafeMutablePointer<passwd>?.none)
    return withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { room in
      guard let base = room.baseAddress, getpwuid_r(user, &entry, base, room.count, &found) == 0, found != nil,
        let name = entry.pw_name
      else { return "\(user)" }
      return String(cString: name)
    }
  }
}
