package import Base
internal import Glibc
internal import NIOCore

extension ListenAddress {
  /// Binds the first of `bindCandidates` that works. If none does, throws an error of one line.
  ///
  /// - Parameters:
  ///   - setting: the listener, for the message.
  ///   - attempt: binds one host and port, for example by a `ServerBootstrap`.
  package func bind<Bound: Sendable>(
    for setting: SettingName, _ attempt: (_ host: String, _ port: Int) async throws -> Bound
  ) async throws(ConfigurationError) -> Bound {
    var remaining = bindCandidates[...]
    while let candidate = remaining.popFirst() {
      do {
        return try await attempt(candidate, Int(port))
      } catch {
        // The next candidate is worth a try only if IPv6 is missing: a busy port is busy there as well.
        if !remaining.isEmpty, Self.lacksAddressFamily(error) { continue }
        throw Self.failure(self, setting, error)
      }
    }
    throw ConfigurationError(.configuration, "\(setting.flag) \(self): no address to listen on")
  }

  private static func lacksAddressFamily(_ error: any Error) -> Bool {
    guard let code = (error as? IOError)?.errnoCode else { return false }
    return code == EAFNOSUPPORT || code == EADDRNOTAVAIL || code == EPFNOSUPPORT
  }

  private static func failure(_ address: ListenAddress, _ setting: SettingName, _ error: any Error)
    -> ConfigurationError
  {
    let (why, advice): (String, String)
    switch (error as? IOError)?.errnoCode {
    case EADDRINUSE:
      let transport = setting.transport
      let holder = PortHolder.of(address.port, transport)
      let other = (1...100).lazy.compactMap { UInt16(exactly: Int(address.port) + $0) }
        .first { !PortHolder.isTaken($0, transport) }
      let suggestion = other.map { ": \(setting.flag) \(ListenAddress(host: address.host, port: $0))" } ?? ""
      (why, advice) = (
        holder.map { "\($0) has the port" } ?? "the port is in use",
        "stop the other program or choose another port\(suggestion)"
      )
    case EACCES, EPERM:
      (why, advice) = ("this user may not use that port", "take a port above 1023 or grant CAP_NET_BIND_SERVICE")
    case EADDRNOTAVAIL:
      (why, advice) = ("this machine has no such address", "write :\(address.port) to listen on every address")
    case .some(let code):
      (why, advice) = (String(cString: strerror(code)), "choose another address")
    case nil:
      (why, advice) = ("\(error)", "choose another address")
    }
    return ConfigurationError(
      .configuration, "cannot listen on \(address) (\(setting.origin)): \(why); \(advice)")
  }
}

extension SettingName {
  /// Over what the listener of this setting is reached.
  package var transport: PortHolder.Transport { ["srt", "webrtc"].contains(self) ? .udp : .tcp }
}
