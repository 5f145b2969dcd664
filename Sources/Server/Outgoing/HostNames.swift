internal import Basics
internal import Glibc
internal import Ingest
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Finds out whether the name of a host can be found. The HTTP client looks names up one after the other, on each of its event
/// loops. There a name whose server does not answer holds up the names behind it for ten seconds and more. So each name is looked
/// up here first, once for all who ask for it meanwhile, and beside all others: none waits for another. The client's own look then
/// finds what the name server has just learned. A host that has just answered is not looked up: the client mostly has a connection
/// to it.
final class HostNames: Sendable {
  /// The most names that are looked up at a time. Each takes a thread and two descriptors for as long as the system's resolver
  /// wants. More than settings can name: hooks, a callback and a key set.
  static let most = 80

  enum Outcome: Sendable, Hashable {
    case found
    /// With the resolver's reason.
    case unknown(String)
    /// Not within the time that the caller has.
    case late
  }

  /// How long a host that was found or has answered needs no look: as long as the client keeps a connection.
  static let validity = TimeAmount.seconds(30)

  /// Those of the machine.
  static let system = HostNames(ask: HostNames.askSystem)

  private let ask: @Sendable (String) -> Outcome
  private let now: @Sendable () -> NIODeadline
  /// Until when hosts need no look. Those at addresses that settings name, so they are few.
  private let known = Mutex<[String: NIODeadline]>([:])
  private let flight = SingleFlight<String, Outcome>(limit: HostNames.most, on: OwnThreads())

  /// - Parameter ask: looks a name up; may block for long.
  init(now: @escaping @Sendable () -> NIODeadline = { .now() }, ask: @escaping @Sendable (String) -> Outcome) {
    (self.now, self.ask) = (now, ask)
  }

  /// The host of an address, without the brackets of an IPv6 address, was found or has answered.
  func note(_ host: String) {
    let now = now()
    known.withLock { known in
      if known.count >= Self.most { known = known.filter { $0.value > now } }
      if known.count < Self.most || known[host] != nil { known[host] = now + Self.validity }
    }
  }

  /// Looks a name up, until the deadline or the end of the task at most. An address needs no look.
  func look(up host: String, until deadline: NIODeadline) async -> Outcome {
    guard (try? SocketAddress(ipAddress: host, port: 0)) == nil else { return .found }
    let now = now()
    if let until = known.withLock({ $0[host] }), until > now { return .found }
    guard deadline > now else { return .late }
    let loop = NIOSingletons.posixEventLoopGroup.any()
    // It goes on after those who asked have given up. What it finds is for the next one who asks.
    let found = flight.value(of: host, on: loop) { [self] in
      let outcome = ask(host)
      if outcome == .found { note(host) }
      return outcome
    }
    guard let found else { return .unknown("too many names are being looked up") }
    let answer = loop.makePromise(of: Outcome.self)
    found.flatMapErrorThrowing { _ in .unknown("the system has no thread for the look for its name") }
      .orElse(.late, after: deadline - now).cascade(to: answer)
    return await withTaskCancellationHandler {
      (try? await answer.futureResult.get()) ?? .late
    } onCancel: {
      answer.succeed(.late)
    }
  }

  private static func askSystem(_ host: String) -> Outcome {
    var hints = addrinfo()
    hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, &hints, &found)
    if let found { freeaddrinfo(found) }
    return code == 0 ? .found : .unknown("the look for its name failed: \(String(cString: gai_strerror(code)))")
  }
}

/// A thread for each piece of work, as long as it takes.
private struct OwnThreads: WorkThreads {
  func submit(_ body: @escaping @Sendable (NIOThreadPool.WorkItemState) -> Void) {
    do throws(DedicatedThread.Failure) {
      try DedicatedThread.start(named: "weir-names") { body(.active) }
    } catch {
      body(.cancelled)
    }
  }
}
