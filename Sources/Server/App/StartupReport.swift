internal import API
internal import Base
internal import Control
internal import Glibc
internal import LocalSources
internal import Logging
internal import NIOCore
internal import Publishing
internal import Settings

/// The first lines of output: what to open, where to publish, where recordings are stored.
struct StartupReport {
  let configuration: ServerConfiguration
  let capacity: ServerCapacity
  let http: SocketAddress
  let https: SocketAddress?
  /// The addresses for publishers.
  let endpoints: [PublisherProtocol.Endpoint]
  /// The addresses of this machine for others (`MachineAddresses`).
  let addresses: [String]
  let publishing: Publishing

  /// The address of the first source's page, or of the list of streams.
  var page: String { "http://\(http.authority)/\(path)" }

  private var path: String { configuration.sources.first.map { "watch/\($0.name)" } ?? "" }

  var text: String {
    var lines = ["\(Version.name) \(Version.number)"]
    lines.append("  watch    \(page)")
    for authority in others(http) { lines.append("           http://\(authority)/\(path)") }
    if let url = configuration.publicURL { lines.append("           \(url)/\(path)") }
    if let https {
      for authority in [https.authority] + others(https) { lines.append("           https://\(authority)/\(path)") }
    }
    let key = publishing == .open ? "" : "?key=…"
    for endpoint in endpoints {
      lines.append("  publish  \(endpoint.of.invitation(endpoint.server, key))")
      for authority in others(endpoint.address) {
        lines.append("           \(endpoint.of.invitation(endpoint.server(at: authority), key))")
      }
    }
    let place = configuration.recordingsFolder.map { "\(LogText.escaped($0))/NAME/" } ?? "off"
    lines.append("  record   \(place)")
    lines.append(
      "  room     \(capacity.streams) streams, \(capacity.connections) connections of viewers"
        + " (\(capacity.descriptors) descriptors), \(capacity.mediaBytes >> 20) MiB of media in memory")
    for warning in warnings { lines.append("  warning  \(warning)") }
    return lines.joined(separator: "\n") + "\n"
  }

  /// A machine with containers has many; the first are those of its default route.
  private static let mostAddresses = 3

  private func others(_ bound: SocketAddress) -> [String] {
    bound.authorities(of: Array(addresses.prefix(Self.mostAddresses)))
  }

  /// Lengths from which keys and tokens cannot be guessed over the network, in bytes.
  private static let leastKey = 8
  private static let leastToken = 16

  /// Who may publish.
  enum Publishing: Sendable { case open, byKey, closedToAll }

  private var warnings: [String] {
    var warnings: [String] = []
    switch publishing {
    case .open:
      warnings.append(
        "every client that reaches this machine may publish; set a key with --publish-key or WEIR_PUBLISH_KEY")
    case .closedToAll: warnings.append(Authorizer.closedToAll)
    case .byKey: break
    }
    if let length = configuration.publishKeys.shortest, length < Self.leastKey {
      warnings.append("a publish key of \(length) characters can be guessed; use \(Self.leastKey) or more")
    }
    if let length = configuration.adminToken?.length, length < Self.leastToken {
      warnings.append(
        "an admin token of \(length) characters can be guessed; use \(Self.leastToken) or more (openssl rand -hex 16)")
    }
    return warnings
  }

  /// Prints the report to standard output, and says the same in the log. With `--log json` all output is JSON, and only a
  /// terminal gets the report. Who sees the report on a terminal needs no line of the log.
  func tell(_ logger: Logger) {
    let isShown = isatty(STDOUT_FILENO) == 1
    if configuration.logFormat == .json || !isShown {
      logger.notice("\(Version.name) \(Version.number) started", metadata: facts)
      if configuration.stateFolder == nil {
        logger.notice("events are kept in memory alone and end with this process: there is no state folder (--state)")
      }
    }
    if configuration.logFormat == .json {
      for warning in warnings { logger.warning("\(warning)") }
      guard isShown else { return }
    }
    let bytes = Array(text.utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }

  /// The addresses, the folder of recordings and the limits.
  private var facts: Logger.Metadata {
    var facts: Logger.Metadata = [
      "http": "http://\(http.authority)", "recordings": "\(configuration.recordingsFolder ?? "off")",
    ]
    for endpoint in endpoints { facts[endpoint.setting.text] = "\(endpoint.server)" }
    facts["streamCapacity"] = "\(capacity.streams)"
    facts["connectionCapacity"] = "\(capacity.connections)"
    facts["mediaMemoryBytes"] = "\(capacity.mediaBytes)"
    if !others(http).isEmpty { facts["addresses"] = "\(addresses.joined(separator: " "))" }
    facts["https"] = https.map { "https://\($0.authority)" }
    facts["publicURL"] = configuration.publicURL.map { "\($0)" }
    return facts
  }
}
