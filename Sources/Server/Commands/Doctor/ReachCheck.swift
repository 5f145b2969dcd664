internal import Base
internal import Control
internal import NIOCore
internal import Settings

/// Whether the addresses that weir tells others lead to it. Only a server that runs can be reached.
enum ReachCheck {
  /// A machine with containers has many; the first are those of its default route.
  private static let mostAddresses = 3
  private static let patience = Duration.seconds(3)

  static func findings(_ configuration: ServerConfiguration) async -> [Finding] {
    let isServed = PortCheck.isServed(configuration.http)
    var findings: [Finding] = []
    for url in addresses(configuration.http) {
      findings.append(
        isServed
          ? await asked(url, "a firewall of this machine may be in the way: let TCP port \(configuration.http.port) in")
          : .ok("address", url, "not asked, since weir does not run; others use it once it does"))
    }
    if findings.isEmpty {
      findings.append(.ok("address", "\(configuration.http)", "for programs of this machine alone"))
    }
    guard let url = configuration.publicURL.map({ "\($0)" }) else { return findings }
    let advice = "look at its name (DNS), and at the proxy that answers for it"
    return findings + [isServed ? await asked(url, advice) : .ok("address", url, "not asked, since weir does not run")]
  }

  /// Where other machines find pages; none where weir listens for this machine alone.
  private static func addresses(_ address: ListenAddress) -> [String] {
    hosts(address).map { "http://\(written($0)):\(address.port)" }
  }

  /// The addresses of this machine by which others reach a listener; none where it is for this machine alone.
  static func hosts(_ address: ListenAddress) -> [String] {
    switch address.host {
    case .any: Array(MachineAddresses.all().prefix(mostAddresses))
    case .ipv4(let host): host.hasPrefix("127.") ? [] : [host]
    case .ipv6(let host): host == "::1" ? [] : [host]
    }
  }

  /// As URLs have it (RFC 3986 §3.2.2).
  static func written(_ host: String) -> String { host.contains(":") ? "[\(host)]" : host }

  private static func asked(_ url: String, _ advice: String) async -> Finding {
    do throws(OutgoingRequest.Failure) {
      let answer = try await OutgoingRequest(url: "\(url)/healthz", patience: patience).send()
      return answer.status == 200
        ? .ok("address", url, "answers") : .problem("address", url, "answers with status \(answer.status)", advice)
    } catch {
      return .problem("address", url, "does not answer: \(error)", advice)
    }
  }
}
