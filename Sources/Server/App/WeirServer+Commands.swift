internal import Base
internal import Glibc
internal import HTTP
internal import Logging
internal import Settings

/// The socket for commands of the same user.
extension WeirServer {
  /// Listens on the control socket. The standard one is left out where another server has it, a chosen one must work.
  func listenToCommands(_ http: HTTPListener) async throws -> ControlSocket? {
    let path: String
    switch configuration.control {
    case .none: return nil
    case .path(let chosen): path = chosen
    case .standard:
      guard let standard = ControlSocket.standardPath(Self.environment) else { return nil }
      path = standard
    }
    do {
      let socket = try ControlSocket.listen(at: path)
      try await http.start(socket)
      return socket
    } catch let failure as ControlSocket.Failure {
      let reason = "cannot listen for commands at \(LogText.escaped(path)): \(failure.description)"
      guard case .path = configuration.control else {
        logger.notice("\(reason); weir streams and the like need --control PATH of their own")
        return nil
      }
      throw ConfigurationError(.configuration, "\(reason); name another path with --control, or use --control off")
    }
  }

  /// The variables that name the folder of the control socket.
  private static var environment: [String: String] {
    ["RUNTIME_DIRECTORY", "XDG_RUNTIME_DIR"].reduce(into: [:]) { found, name in
      found[name] = getenv(name).map { String(cString: $0) }
    }
  }
}
