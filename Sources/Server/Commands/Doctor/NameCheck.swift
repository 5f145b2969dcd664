internal import Basics
internal import HTTP
internal import Ingest

/// Under which names the server answers, and whether it has one where viewers will use one.
enum NameCheck {
  /// Private networks (RFC 1918, RFC 6598, RFC 4193). Others of a network ask for a machine by its address, or by a local name.
  private static let privateRanges = [
    "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "127.0.0.0/8", "fc00::/7",
  ].compactMap { AddressRange(parsing: $0) }
  private static let mostNames = 10

  static func findings(_ configuration: ServerConfiguration) -> [Finding] {
    let certificate = configuration.tls.flatMap { try? $0.hosts() }?.names ?? []
    let addresses = [configuration.http, configuration.https].compactMap { $0 }.flatMap(ReachCheck.hosts)
    let given = configuration.allowedHosts + certificate + (configuration.publicURL.map { [$0.host] } ?? [])
    return [
      finding(
        names: configuration.hosts.names.union(certificate), isPublic: addresses.contains(where: isPublic),
        hasName: !given.isEmpty || configuration.trustedProxies != .none)
    ]
  }

  /// - Parameters:
  ///   - names: those beside addresses and names without a dot.
  ///   - isPublic: the Internet reaches the server.
  ///   - hasName: the settings have a name for it, or a proxy that passes names on.
  static func finding(names: Set<String>, isPublic: Bool, hasName: Bool) -> Finding {
    let dotted = names.filter { $0.contains(".") }.sorted()
    let told = AllowedHosts.localEnds.map { "*.\($0)" } + dotted.prefix(mostNames)
    let found =
      "answered are addresses, names without a dot, \(told.joined(separator: ", "))\(dotted.count > mostNames ? " …" : "")"
    guard isPublic, !hasName else { return .ok("names", "", found) }
    return .advice(
      "names", "", "\(found); other names get 421",
      "give the one that viewers use: --public-url https://NAME, a certificate, or --allowed-host NAME")
  }

  static func isPublic(_ address: String) -> Bool {
    guard let address = NetworkAddress(parsing: address) else { return false }
    return !privateRanges.contains { $0.contains(address) }
  }
}
