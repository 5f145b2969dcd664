internal import Glibc

/// The names by which others ask for this machine.
package enum MachineNames {
  /// The host name, and what the files of the system name beside it: mostly the name with its domain. Reads a small file, and asks no
  /// name server. The search domains of the network do not count: it is told them (DHCP), and anybody may have such a domain.
  package static func all() -> [String] {
    var name = [CChar](repeating: 0, count: Int(HOST_NAME_MAX) + 1)
    guard gethostname(&name, name.count - 1) == 0 else { return [] }
    let host = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return all(of: host, hosts: KernelFile.text("/etc/hosts") ?? "")
  }

  /// - Parameter hosts: the text of hosts(5): names of one line are of one machine.
  static func all(of host: String, hosts: String) -> [String] {
    let label = host.prefix { $0 != "." }
    guard !label.isEmpty else { return [] }
    let lines = hosts.split(separator: "\n").map { $0.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" } }
    let aliases = lines.map { $0.dropFirst() }.filter { $0.contains { $0 == host || $0 == label } }
    return [host] + aliases.joined().map(String.init)
  }
}
