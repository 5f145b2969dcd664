internal import Glibc

/// Reports the state of the process to the service manager (sd_notify(3)): a datagram to the socket in `NOTIFY_SOCKET`. Does
/// nothing if that is not set.
enum SystemdNotify: String {
  case ready = "READY=1"
  case stopping = "STOPPING=1"

  static func send(_ notice: SystemdNotify) {
    guard let path = getenv("NOTIFY_SOCKET").map({ String(cString: $0) }) else { return }
    send(notice, to: path)
  }

  /// `path` begins with a slash, or with an at sign for a name in the abstract namespace.
  static func send(_ notice: SystemdNotify, to path: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var name = Array(path.utf8)
    guard let first = name.first, name.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
    if first == UInt8(ascii: "@") { name[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: name) }
    let descriptor = socket(AF_UNIX, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let length = socklen_t(MemoryLayout<sa_family_t>.size + name.count)
    let text = Array(notice.rawValue.utf8)
    _ = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, text, text.count, 0, __CONST_SOCKADDR_ARG(__sockaddr__: $0), length)
      }
    }
  }
}
