internal import Basics
internal import Glibc
internal import NIOCore
internal import NIOPosix

/// Finds out whether the name of a host can be found. The HTTP client looks names up one after the other, on each of its event
/// loops. There a name whose server does not answer holds up the names behind it for ten seconds and more. So each name is looked
/// up here first, on threads for that alone, once for all who ask for it meanwhile. The client's own look then finds what the name
/// server has just learned.
enum HostNames {
  /// The most names that wait or are under way.
  static let most = 64
  /// How many are looked up at a time. Each takes a thread for as long as the system's resolver wants.
  static let atOnce = 8

  enum Outcome: Sendable, Hashable {
    case found
    /// With the resolver's reason.
    case unknown(String)
    /// Not within the time that the caller has.
    case late
  }

  private static let flight = SingleFlight<String, Outcome>(limit: most, on: WorkQueue("weir-names", threads: atOnce))

  /// Looks a name up, until the deadline at most. An address needs no look.
  static func look(up host: String, until deadline: NIODeadline) async -> Outcome {
    guard (try? SocketAddress(ipAddress: host, port: 0)) == nil else { return .found }
    guard deadline > .now() else { return .late }
    let loop = NIOSingletons.posixEventLoopGroup.any()
    guard let found = flight.value(of: host, on: loop, make: { ask(host) }) else {
      return .unknown("too many names are being looked up")
    }
    return (try? await found.orElse(.late, after: deadline - .now()).get()) ?? .late
  }

  private static func ask(_ host: String) -> Outcome {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    if let found { freeaddrinfo(found) }
    return code == 0 ? .found : .unknown("the name cannot be found: \(String(cString: gai_strerror(code)))")
  }
}
