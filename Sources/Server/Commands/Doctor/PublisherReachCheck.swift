internal import Base
internal import NIOCore
internal import NIOPosix
internal import Settings

/// Whether the addresses that publishers, and viewers by WebRTC, are told lead to a running server. By RTMP and WebRTC a connection
/// is tried, by SRT a handshake.
enum PublisherReachCheck {
  private static let patience = TimeAmount.seconds(3)

  static func findings(_ configuration: ServerConfiguration) async -> [Finding] {
    var findings: [Finding] = []
    let byTCP = [("rtmp", configuration.rtmp), ("rtmps", configuration.rtmps)]
    for case (let scheme, let address?) in byTCP where PortCheck.isServed(address, .tcp) {
      for host in hosts(address) {
        let isReached = await connects(host, address.port)
        findings.append(finding(isReached, "\(scheme)://\(ReachCheck.written(host)):\(address.port)", "TCP", address))
      }
    }
    if let address = configuration.srt, PortCheck.isServed(address, .udp) {
      for host in hosts(address) {
        let isReached = SRTInduction.isAnswered(by: host, address.port)
        findings.append(finding(isReached, "srt://\(ReachCheck.written(host)):\(address.port)", "UDP", address))
      }
    }
    if let address = configuration.webRTC, PortCheck.isServed(address, .udp) {
      findings += await webRTC(address, told: configuration.webRTCAddresses)
    }
    return findings
  }

  /// WebRTC's port takes TCP as well as UDP.
  private static func webRTC(_ address: ListenAddress, told: [PublicMediaAddress]) async -> [Finding] {
    var findings: [Finding] = []
    for advertised in told {
      let port = advertised.port ?? address.port
      let subject = "\(ReachCheck.written(advertised.host)):\(port) (--webrtc-address)"
      findings.append(
        await connects(advertised.host, port)
          ? .ok("address", subject, "answers")
          : .advice(
            "address", subject, "no connection from this machine",
            "forward TCP and UDP port \(port) to port \(address.port) here; many routers lead no connection back inside, so try"
              + " from elsewhere"))
    }
    guard told.isEmpty else { return findings }
    for host in hosts(address) {
      let subject = "\(ReachCheck.written(host)):\(address.port) (--webrtc)"
      findings.append(finding(await connects(host, address.port), subject, "TCP and UDP", address))
    }
    return findings
  }

  /// Where others reach a listener, or only this machine does.
  private static func hosts(_ address: ListenAddress) -> [String] {
    let hosts = ReachCheck.hosts(address)
    guard hosts.isEmpty else { return hosts }
    switch address.host {
    case .any: return []
    case .ipv4(let host), .ipv6(let host): return [host]
    }
  }

  private static func finding(
    _ isReached: Bool, _ subject: String, _ transport: String, _ address: ListenAddress
  ) -> Finding {
    isReached
      ? .ok("address", subject, ReachCheck.hosts(address).isEmpty ? "answers, for this machine alone" : "answers")
      : .problem(
        "address", subject, "does not answer",
        "a firewall of this machine may be in the way: let \(transport) port \(address.port) in")
  }

  private static func connects(_ host: String, _ port: UInt16) async -> Bool {
    let bootstrap = ClientBootstrap(group: NIOSingletons.posixEventLoopGroup).connectTimeout(patience)
    guard let channel = try? await bootstrap.connect(host: host, port: Int(port)).get() else { return false }
    try? await channel.close()
    return true
  }
}
