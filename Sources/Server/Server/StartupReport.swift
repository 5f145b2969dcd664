internal import Glibc
internal import NIOCore

/// The few lines that a person reads first: what to open, where to publish, where recordings go.
struct StartupReport {
  let configuration: ServerConfiguration
  let http: SocketAddress
  let https: SocketAddress?
  let rtmp: SocketAddress
  let rtmps: SocketAddress?

  /// The address of the first source's page, or of the list of streams.
  var page: String { "http://\(Self.authority(http))/\(path)" }

  private var path: String { configuration.sources.first.map { "watch/\($0.name)" } ?? "" }

  var text: String {
    var lines = ["\(Version.name) \(Version.number)"]
    lines.append("  watch    \(page)")
    if let https { lines.append("           https://\(Self.authority(https))/\(path)") }
    for (scheme, address) in [("rtmp", rtmp), ("rtmps", rtmps)] {
      guard let address else { continue }
      let server = "\(scheme)://\(Self.authority(address))/live"
      let key = configuration.publishKey == nil ? "" : "?key=…"
      lines.append("  publish  \(server)/NAME\(key)   (OBS: server \(server), stream key NAME\(key))")
    }
    switch configuration.recording {
    case .off: lines.append("  record   off")
    case .folder(let folder): lines.append("  record   \(LogText.escaped(folder))/NAME/")
    }
    if configuration.publishKey == nil {
      lines.append(
        "  warning  anybody who reaches this machine may publish; set a key with --publish-key or WEIR_PUBLISH_KEY")
    }
    return lines.joined(separator: "\n") + "\n"
  }

  func print() {
    let bytes = Array(text.utf8)
    _ = write(STDOUT_FILENO, bytes, bytes.count)
  }

  /// "localhost:8080" where every address is served, else the address itself.
  private static func authority(_ address: SocketAddress) -> String {
    let port = address.port ?? 0
    switch address.ipAddress {
    case "::", "0.0.0.0", nil: return "localhost:\(port)"
    case .some(let ip): return ip.contains(":") ? "[\(ip)]:\(port)" : "\(ip):\(port)"
    }
  }
}
