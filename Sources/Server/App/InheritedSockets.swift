internal import Base
internal import Glibc
internal import Settings

/// Listening sockets that systemd opens before this process starts and keeps after it ends. Connections made in between wait
/// instead of being refused. systemd passes the sockets (sd_listen_fds(3)): from descriptor 3 on, `LISTEN_FDS` in number, named
/// by `LISTEN_FDNAMES`, for the process `LISTEN_PID`.
struct InheritedSockets: Sendable {
  private var sockets: [SettingName: CInt] = [:]

  static let none = InheritedSockets()
  private static let first: CInt = 3
  private static let limit: CInt = 16
  /// The names that a socket may have.
  static let listeners: [SettingName] = ["http", "https", "rtmp", "rtmps"]

  subscript(_ setting: SettingName) -> CInt? { sockets[setting] }

  private init() {}

  /// Takes the sockets passed to this process, if any. Programs started by weir inherit none of them. Throws if a socket has an
  /// unknown name or does not listen.
  init(environment: [String: String], process: pid_t = getpid()) throws(ConfigurationError) {
    guard environment["LISTEN_PID"].flatMap({ pid_t($0) }) == process,
      let count = environment["LISTEN_FDS"].flatMap({ CInt($0) }), count > 0
    else { return }
    guard count <= Self.limit else {
      throw Self.failure("LISTEN_FDS", "\(count)", "weir does not listen on that many sockets")
    }
    let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
    for index in 0..<count {
      let descriptor = Self.first + index
      _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
      let name = Int(index) < names.count ? String(names[Int(index)]) : ""
      guard let setting = Self.listeners.first(where: { $0.text == name }) else {
        throw Self.failure(
          "LISTEN_FDNAMES", LogText.escaped(name), "set FileDescriptorName= to http, https, rtmp or rtmps")
      }
      guard sockets[setting] == nil else {
        throw Self.failure(
          "LISTEN_FDNAMES", name,
          "only one socket can have this name; use one socket for both addresses, or leave one out")
      }
      guard Self.listens(descriptor) else {
        throw Self.failure(
          "LISTEN_FDS", name, "descriptor \(descriptor) is not a listening stream socket; set Accept=no")
      }
      sockets[setting] = descriptor
    }
  }

  private static func listens(_ descriptor: CInt) -> Bool {
    option(SO_ACCEPTCONN, of: descriptor) == 1 && option(SO_TYPE, of: descriptor) == CInt(SOCK_STREAM.rawValue)
  }

  private static func option(_ name: CInt, of descriptor: CInt) -> CInt? {
    var value: CInt = 0
    var size = socklen_t(MemoryLayout<CInt>.size)
    return getsockopt(descriptor, SOL_SOCKET, name, &value, &size) == 0 ? value : nil
  }

  private static func failure(_ variable: String, _ value: String, _ advice: String) -> ConfigurationError {
    ConfigurationError(.configuration, "socket handed over as \"\(value)\" (\(variable)): \(advice)")
  }
}
