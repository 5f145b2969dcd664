internal import Base
internal import NIOCore

/// How clients reach an address.
enum ConnectionKind: Sendable {
  case plain
  /// The context of the next connection.
  case tls(TLSContextSource)
  /// The Unix socket for the commands.
  case control

  var isTLS: Bool { if case .tls = self { true } else { false } }
  var isControl: Bool { if case .control = self { true } else { false } }
}

/// The other end of a connection, as counted by `ConnectionLimiter`. Confined to the channel's event loop.
final class HTTPPeer {
  /// Without the port, for the log; empty for channels without an address.
  let address: String
  /// The address for counting: an IPv4 address, or the /64 network of an IPv6 address.
  let host: String
  let source: RequestSource
  /// The address that its listener was started at.
  let listenAddress: SocketAddress?
  /// Later connections have higher numbers.
  let number: Int
  /// Whether the connection is served. Otherwise it only gets the response that the server is full, and probes are answered.
  let isServed: Bool
  /// Its address has as many connections as it may have: of this one only a probe is answered.
  let mayOnlyProbe: Bool
  /// The tick in which it is over, if it may only probe.
  private let end: Int
  /// Whether a complete request has arrived.
  private(set) var hasSentRequest = false
  /// Whether it is a viewer's, which ends where something runs short; not a publisher's or a command.
  var mayEnd: Bool { isServed && !isKept && !isEnding && !source.isControl }
  private var isKept = false
  /// It was told to end, and is there for a moment longer.
  var isEnding = false

  var isTLS: Bool { source.isTLS }

  private let limiter: ConnectionLimiter
  private var polls: PollLimit

  /// Counts the connection until the channel closes. Nil when it must be closed without a response.
  init?(
    of channel: any Channel, kind: ConnectionKind, listenAddress: SocketAddress? = nil, services: HTTPServices,
    loop: LoopContext
  ) {
    let limiter = services.limiter
    let host = Self.host(of: channel.remoteAddress)
    let source =
      kind.isControl
      ? .control : RequestSource(peer: channel.remoteAddress, isTLS: kind.isTLS, proxies: services.proxies)
    let client = ConnectionLimiter.Client(address: host, isProxy: source.isProxy, isControl: kind.isControl)
    let (admission, number) = limiter.admit(client, on: channel, isTLS: kind.isTLS)
    guard admission != .dropped else { return nil }
    address = kind.isControl ? "control socket" : channel.remoteAddress?.ipAddress ?? ""
    self.host = host
    self.number = number
    self.source = source
    self.listenAddress = listenAddress
    mayOnlyProbe = admission == .probing
    isServed = admission != .refused && !mayOnlyProbe
    end = mayOnlyProbe ? loop.now &+ loop.ticks(services.limits.probeTime) : .max
    self.limiter = limiter
    polls = PollLimit(repeatsPerSecond: services.policy.now.repeatedPolls, loop: loop)
    channel.closeFuture.assumeIsolated().whenComplete { _ in
      limiter.leave(client, admission, number: number, hasSentRequest: self.hasSentRequest)
    }
  }

  /// The address for counting; empty without an address.
  static func host(of address: SocketAddress?) -> String { NetworkAddress(address)?.hostText ?? "" }

  /// Whether a response, about to be sent, exceeds the limit of repeated polls. `playlist` is nil for one that is no playlist.
  func polls(_ playlist: PreencodedResponse?) -> Bool { polls.isExceeded(by: playlist) }

  /// A complete request has arrived.
  func requestArrived() {
    guard !hasSentRequest else { return }
    hasSentRequest = true
    if !mayOnlyProbe { limiter.requestArrived(from: host) }
  }

  /// The response to what is not answered on a connection that is not served.
  var refusal: HTTPResponse { mayOnlyProbe ? StandardResponse.addressFull : StandardResponse.full }

  /// It may only probe, and has had the time for that.
  func isOver(_ loop: LoopContext) -> Bool { loop.now >= end }

  /// A publisher's media is taken on it.
  func keep() {
    isKept = true
    limiter.keep(number, of: host)
  }

  /// The connection, which is not served, has its response and waits for the client to close.
  func answered() { limiter.answered(number) }
}
