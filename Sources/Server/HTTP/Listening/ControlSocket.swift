internal import Glibc

/// The Unix socket over which the commands reach the running server (`weir streams`, `weir sessions` …). Only the server's own
/// user and root can connect: the file has mode 0600, and the uid of each peer is checked again (`HTTPListener`). Requests over
/// it have admin rights without a token.
package struct ControlSocket: Sendable {
  /// Where the socket is.
  package enum Place: Sendable, Hashable {
    /// The first of `standardPaths` whose folder can be written to; none if there is no such folder, or a server listens there.
    case standard
    case none
    case path(String)
  }

  /// Why a socket cannot be used.
  package enum Failure: Error, Sendable, Hashable {
    /// Another process listens there.
    case inUse
    /// There is a file at the path that is not a socket.
    case isNoSocket
    case tooLong
    /// The number of a system error.
    case system(CInt)

    package var description: String {
      switch self {
      case .inUse: "another weir listens there"
      case .isNoSocket: "there is a file that is not a socket"
      case .tooLong: "the path is longer than \(ControlSocket.longestPath) bytes"
      case .system(let number): String(cString: strerror(number))
      }
    }
  }

  package let path: String
  /// Listens; belongs to the listener that takes it.
  package let descriptor: CInt

  fileprivate static let longestPath = MemoryLayout<sockaddr_un>.size - MemoryLayout<sa_family_t>.size - 1
  private static let fileName = "weir.sock"

  // MARK: Places

  /// Where the socket is by default: the service's folder, then that of the user's session.
  package static func standardPaths(_ environment: [String: String]) -> [String] {
    let service = environment["RUNTIME_DIRECTORY"]?.split(separator: ":").first.map(String.init) ?? "/run/weir"
    return [service, environment["XDG_RUNTIME_DIR"] ?? ""].filter { $0.hasPrefix("/") }.map { "\($0)/\(fileName)" }
  }

  /// The first standard path whose folder can be written to.
  package static func standardPath(_ environment: [String: String]) -> String? {
    standardPaths(environment).first { access(String($0.dropLast(fileName.utf8.count)), W_OK | X_OK) == 0 }
  }

  // MARK: Listening

  /// Listens at a path. A socket that no process listens on is replaced.
  package static func listen(at path: String) throws(Failure) -> ControlSocket {
    try removeStale(path)
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { throw .system(errno) }
    do throws(Failure) {
      // The mode of the socket becomes that of its file, so it never has another one (unix(7)).
      guard fchmod(descriptor, 0o600) == 0 else { throw .system(errno) }
      try at(path) { bind(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }
      guard Glibc.listen(descriptor, 16) == 0 else { throw .system(errno) }
    } catch {
      close(descriptor)
      throw error
    }
    return ControlSocket(path: path, descriptor: descriptor)
  }

  /// Removes the file after the listener has closed, unless another server listens there by then.
  package func remove() { try? Self.removeStale(path) }

  /// Whether the peer of a connection is the user of this process, or root (SO_PEERCRED of unix(7)).
  static func allows(_ descriptor: CInt) -> Bool {
    // struct ucred: pid, uid, gid.
    var credentials: [UInt32] = [0, .max, .max]
    var size = socklen_t(MemoryLayout<UInt32>.size * credentials.count)
    guard getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0 else { return false }
    return credentials[1] == 0 || credentials[1] == geteuid()
  }

  private static func removeStale(_ path: String) throws(Failure) {
    var status = stat()
    guard lstat(path, &status) == 0 else { return }
    guard status.st_mode & S_IFMT == S_IFSOCK else { throw .isNoSocket }
    guard let failure = probe(path) else { throw .inUse }
    guard failure == .system(ECONNREFUSED) else { throw failure }
    unlink(path)
  }

  // MARK: Connecting

  /// Connects and closes. Nil if a process listens there.
  package static func probe(_ path: String) -> Failure? {
    let descriptor = socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return .system(errno) }
    defer { close(descriptor) }
    do throws(Failure) {
      try at(path) { connect(descriptor, __CONST_SOCKADDR_ARG(__sockaddr__: $0), $1) }
      return nil
    } catch {
      return error
    }
  }

  private static func at(
    _ path: String, _ call: (UnsafePointer<sockaddr>, socklen_t) -> CInt
  ) throws(Failure) {
    let bytes = Array(path.utf8)
    guard bytes.count <= longestPath else { throw .tooLong }
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count + 1)
    let result = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, length) }
    }
    guard result == 0 else { throw .system(errno) }
  }
}
