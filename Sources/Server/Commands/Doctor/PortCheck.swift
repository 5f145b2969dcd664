internal import Base
internal import NIOCore
internal import NIOPosix
internal import Settings

/// Whether the addresses to listen on are free, and who has them.
enum PortCheck {
  static func findings(_ configuration: ServerConfiguration) async -> [Finding] {
    let listeners: [(SettingName, ListenAddress?)] = [
      ("http", configuration.http), ("https", configuration.https), ("rtmp", configuration.rtmp),
      ("rtmps", configuration.rtmps), ("srt", configuration.srt),
      ("webrtc", configuration.webRTC),
    ]
    var findings: [Finding] = []
    for (setting, address) in listeners {
      if let address { findings.append(await finding(setting, address)) }
    }
    return findings
  }

  private static func finding(_ setting: SettingName, _ address: ListenAddress) async -> Finding {
    let subject = "\(address) (\(setting.text))"
    guard address.port != 0 else { return .ok("port", subject, "the system chooses a free one") }
    do throws(ConfigurationError) {
      try await address.bind(for: setting) { host, port in try await attempt(host, port, setting.transport) }
      return .ok("port", subject, "is free")
    } catch {
      if let holder = PortHolder.of(address.port, setting.transport), isService(holder) {
        return .ok("port", subject, "\(holder) has it: the service is there")
      }
      return .split(.problem, "port", "", error.description)
    }
  }

  /// weir itself, or the service manager, which keeps the sockets for it.
  static func isService(_ holder: PortHolder) -> Bool {
    holder.name == Version.name || holder.process == 1
  }

  /// Whether weir, or the service manager for it, has the address now.
  static func isServed(_ address: ListenAddress, _ transport: PortHolder.Transport = .tcp) -> Bool {
    address.port != 0 && PortHolder.of(address.port, transport).map(isService) == true
  }

  /// Binds, and gives the address back at once.
  private static func attempt(_ host: String, _ port: Int, _ transport: PortHolder.Transport) async throws {
    let group = NIOSingletons.posixEventLoopGroup
    let channel: any Channel
    switch transport {
    case .tcp:
      // As the server does: connections that end do not keep it from listening.
      channel = try await ServerBootstrap(group: group).serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
        .serverChannelOption(.backlog, value: 1).bind(host: host, port: port).get()
    case .udp: channel = try await DatagramBootstrap(group: group).bind(host: host, port: port).get()
    }
    try await channel.close()
  }
}
