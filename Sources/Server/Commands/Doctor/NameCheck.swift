internal import Base
internal import HTTP
internal import Settings

/// Under which names the server answers, and whether it has one where viewers will use one.
enum NameCheck {
  private static let mostNames = 10

  static func findings(_ configuration: ServerConfiguration) -> [Finding] {
    let certificate = configuration.tls.flatMap { try? $0.hosts() }?.names ?? []
    let addresses = [configuration.http, configuration.https].compactMap { $0 }.flatMap(ReachCheck.hosts)
    let given = configuration.allowedHosts + certificate + (configuration.publicURL.map { [$0.host] } ?? [])
    return [
      finding(
        names: configuration.hosts.names.union(certificate), isReached: !addresses.isEmpty,
        hasName: !given.isEmpty || configuration.trustedProxies != .none)
    ]
  }

  /// - Parameters:
  ///   - names: those beside addresses and names without a dot.
  ///   - isReached: other machines reach the server. Behind NAT, or in a container, that may be all of the Internet.
  ///   - hasName: the settings have a name for it, or a proxy that passes names on.
  static func finding(names: Set<String>, isReached: Bool, hasName: Bool) -> Finding {
    let dotted = names.filter { $0.contains(".") }.sorted()
    let told = AllowedHosts.localEnds.map { "*.\($0)" } + dotted.prefix(mostNames)
    let found =
      "answered are addresses, names without a dot, \(told.joined(separator: ", "))\(dotted.count > mostNames ? " …" : "")"
    guard isReached, !hasName else { return .ok("names", "", found) }
    return .advice(
      "names", "", "\(found); other names get 421",
      "give the one that viewers use: --public-url https://NAME, a certificate, or --allowed-host NAME")
  }
}
