internal import Basics
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Finds out whether the name of a host can be found. The HTTP client looks names up one after the other, on each of its event
/// loops. There a name whose server does not answer holds up the names behind it for ten seconds and more. So each name is looked
/// up here first, on threads for that alone, once for all who ask for it meanwhile. The client's own look then finds what the name
/// server has just learned. A host that has just answered is not looked up: the client mostly has a connection to it.
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

  /// How long a host that was found or has answered needs no look: as long as the client keeps a connection.
  static let validity = TimeAmount.seconds(30)

  /// Until when hosts need no look. Those at addresses that settings name, so they are few.
  private static let known = Mutex<[String: NIODeadline]>([:])
  private static let flight = SingleFlight<String, Outcome>(limit: most, on: WorkQueue("weir-names", threads: atOnce))

  /// The host of an address, without the brackets of an IPv6 address, was found or has answered.
  static func note(_ host: String) {
    known.withLock { known in
      if known.count >= most { known = known.filter { $0.value > .now() } }
      if known.count < most || known[host] != nil { known[host] = .now() + validity }
    }
  }

  /// Looks a name up, until the deadline or the end of the task at most. An address needs no look.
  static func look(up host: String, until deadline: NIODeadline) async -> Outcome {
    guard (try? SocketAddress(ipAddress: host, port: 0)) == nil else { return .found }
    if let until = known.withLock({ $0[host] }), until > .now() { return .found }
    guard deadline > .now() else { return .late }
    let loop = NIOSingletons.posixEventLoopGroup.any()
    guard let found = flight.value(of: host, on: loop, make: { ask(host) }) else {
      return .unknown("too many names are being looked up")
    }
    let answer = loop.makePromise(of: Outcome.self)
    found.orElse(.late, after: deadline - .now()).cascade(to: answer)
    let outcome = await withTaskCancellationHandler {
      (try? await answer.futureResult.get()) ?? .late
    } onCancel: {
      answer.succeed(.late)
    }
    if outcome == .found { note(host) }
    return outcome
  }

  private static func ask(_ host: String) -> Outcome {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    if let found { freeaddrinfo(found) }
    return code == 0 ? .found : .unknown("the look for its name failed: \(String(cString: gai_strerror(code)))")
  }
}
