internal import Glibc

/// The names by which others in its network ask for this machine.
package enum MachineNames {
  /// The host name, what the files of the system name beside it, and the host name in the domains of the network. Reads two small
  /// files, and asks no name server.
  package static func all() -> [String] {
    var name = [CChar](repeating: 0, count: Int(HOST_NAME_MAX) + 1)
    guard gethostname(&name, name.count - 1) == 0 else { return [] }
    let host = String(decoding: name.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self)
    return all(
      of: host, hosts: KernelFile.text("/etc/hosts") ?? "", resolver: KernelFile.text("/etc/resolv.conf") ?? "")
  }

  /// - Parameters:
  ///   - hosts: the text of hosts(5): names of one line are of one machine.
  ///   - resolver: the text of resolv.conf(5): the last list of domains counts.
  static func all(of host: String, hosts: String, resolver: String) -> [String] {
    func lines(_ text: String) -> [[Substring]] {
      text.split(separator: "\n").map { $0.prefix { $0 != "#" }.split { $0 == " " || $0 == "\t" } }
    }
    let label = host.prefix { $0 != "." }
    guard !label.isEmpty else { return [] }
    let aliases = lines(hosts).map { $0.dropFirst() }.filter { $0.contains { $0 == host || $0 == label } }
    let domains = lines(resolver).last { $0.first == "search" || $0.first == "domain" }?.dropFirst() ?? []
    return [host] + aliases.joined().map(String.init) + domains.map { "\(label).\($0)" }
  }
}
