internal import Basics
internal import HTTP
internal import NIOCore

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
    let hosts: [String]
    switch address.host {
    case .any: hosts = MachineAddresses.all().prefix(mostAddresses).map { $0.contains(":") ? "[\($0)]" : $0 }
    case .ipv4(let host): hosts = host.hasPrefix("127.") ? [] : [host]
    case .ipv6(let host): hosts = host == "::1" ? [] : ["[\(host)]"]
    }
    return hosts.map { "http://\($0):\(address.port)" }
  }

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
