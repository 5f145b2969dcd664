package import Base
internal import Glibc
internal import NIOCore
internal import NIOPosix
internal import Synchronization

/// Finds out whether the name of a host can be found. The HTTP client looks names up one after the other, on each of its event
/// loops. There a name whose server does not answer holds up the names behind it for ten seconds and more. So each name is looked
/// up here first, once for all who ask for it meanwhile, and beside all others: none waits for another. The client's own look then
/// finds what the name server has just learned. A host that has just answered is not looked up: the client mostly has a connection
/// to it.
package final class HostNames: Sendable {
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
  package static let system = HostNames(ask: HostNames.askSystem)

  /// How long a look is waited for by those who ask later. The system's resolver mostly gives up earlier. A part of it that never
  /// returns must not keep the host unknown.
  static let patience = TimeAmount.seconds(60)

  /// The most looks for one host at a time: one that never returns, and one beside it.
  private static let perHost = 2

  /// What looks take their descriptors from.
  package let descriptors: Reloadable<DescriptorBudget>

  private let ask: @Sendable (String) -> Outcome
  private let now: @Sendable () -> NIODeadline
  private let state = Mutex(State())
  private let flight = SingleFlight<Int, Outcome>(limit: HostNames.most, on: OwnThreads())

  private struct State {
    /// Until when hosts need no look. Those at addresses that settings name, so they are few.
    var known: [String: NIODeadline] = [:]
    /// The looks for each host that are under way, in the order in which they began.
    var looks: [String: [Look]] = [:]
    /// Looks that have begun, ever.
    var count = 0

    /// The look to wait for: the newest one, or a new one.
    mutating func number(of host: String, _ now: NIODeadline) -> Int {
      let underWay = looks[host] ?? []
      if let newest = underWay.last, underWay.count >= HostNames.perHost || now < newest.since + HostNames.patience {
        return newest.number
      }
      count += 1
      looks[host] = underWay + [Look(number: count, since: now)]
      return count
    }

    /// The look is done, or has not begun.
    mutating func end(_ number: Int, of host: String) {
      looks[host]?.removeAll { $0.number == number }
      if looks[host]?.isEmpty == true { looks[host] = nil }
    }
  }

  private struct Look {
    let number: Int
    let since: NIODeadline
  }

  /// - Parameter ask: looks a name up; may block for long.
  init(
    descriptors: DescriptorBudget = .unlimited, now: @escaping @Sendable () -> NIODeadline = { .now() },
    ask: @escaping @Sendable (String) -> Outcome
  ) {
    (self.descriptors, self.now, self.ask) = (Reloadable(descriptors), now, ask)
  }

  /// The host of an address, without the brackets of an IPv6 address, was found, or has answered and the connection is kept.
  func note(_ host: String) {
    let now = now()
    state.withLock { state in
      if state.known.count >= Self.most { state.known = state.known.filter { $0.value > now } }
      if state.known.count < Self.most || state.known[host] != nil { state.known[host] = now + Self.validity }
    }
  }

  /// There is no connection to the host any more: it is looked up for the next request.
  func forget(_ host: String) { state.withLock { $0.known[host] = nil } }

  /// Looks a name up, until the deadline or the end of the task at most. An address needs no look.
  func look(up host: String, until deadline: NIODeadline) async -> Outcome {
    guard (try? SocketAddress(ipAddress: host, port: 0)) == nil else { return .found }
    let now = now()
    if let until = state.withLock({ $0.known[host] }), until > now { return .found }
    guard deadline > now else { return .late }
    let loop = NIOSingletons.posixEventLoopGroup.any()
    let number = state.withLock { $0.number(of: host, now) }
    // It goes on after those who asked have given up. What it finds is for the next one who asks.
    let found = flight.value(of: number, on: loop) { [self] in
      let outcome = askWithinBudget(host)
      if outcome == .found { note(host) }
      state.withLock { $0.end(number, of: host) }
      return outcome
    }
    guard let found else {
      state.withLock { $0.end(number, of: host) }
      return .unknown("too many names are being looked up")
    }
    let answer = loop.makePromise(of: Outcome.self)
    found.flatMapErrorThrowing { [self] _ in
      state.withLock { $0.end(number, of: host) }
      return .unknown("the system has no thread for the look for its name")
    }
    .orElse(.late, after: deadline - now).cascade(to: answer)
    return await withTaskCancellationHandler {
      (try? await answer.futureResult.get()) ?? .late
    } onCancel: {
      answer.succeed(.late)
    }
  }

  private func askWithinBudget(_ host: String) -> Outcome {
    let descriptors = descriptors.now
    guard descriptors.takeLook() else { return .unknown("too few descriptors are free for the look for its name") }
    defer { descriptors.giveBackLook() }
    return ask(host)
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
