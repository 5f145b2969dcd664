internal import Ingest
internal import NIOCore

/// Who is at the other end of a connection, as the census counts it. Confined to the channel's event loop.
final class HTTPPeer {
  /// Without the port, for the log; empty for channels that have none.
  let address: String
  /// What counts as one address: that of IPv4, the /64 of IPv6.
  let host: String
  let source: RequestSource
  /// The later the connection came, the higher.
  let number: Int
  /// Whether the server has room for it: else all it hears is that the server is full.
  let isServed: Bool
  /// Whether a whole request has come.
  private(set) var isProven = false

  var isTLS: Bool { source.isTLS }

  private let limiter: ConnectionLimiter
  private var polls: PollLimit

  /// Counts the connection in until the channel closes; nil where it is to be closed without a word.
  init?(of channel: any Channel, isTLS: Bool, services: HTTPServices, loop: LoopContext) {
    let limiter = services.limiter
    let host = Self.host(of: channel.remoteAddress)
    let source = RequestSource(peer: channel.remoteAddress, isTLS: isTLS, proxies: services.proxies)
    let admission = limiter.admit(host, isTLS: isTLS, isProxy: source.isProxy)
    guard admission != .dropped else { return nil }
    address = channel.remoteAddress?.ipAddress ?? ""
    self.host = host
    number = limiter.nextNumber()
    self.source = source
    isServed = admission != .refused
    self.limiter = limiter
    polls = PollLimit(repeatsPerSecond: services.limits.repeatedPolls, loop: loop)
    channel.closeFuture.assumeIsolated().whenComplete { _ in
      limiter.leave(host, admission, isProven: self.isProven)
    }
  }

  /// What counts as one address; empty where there is none.
  static func host(of address: SocketAddress?) -> String { NetworkAddress(address)?.hostText ?? "" }

  /// Whether this answer, which is about to be given, is one of too many in a row.
  func polls(_ response: HTTPResponse) -> Bool { polls.isExceeded(by: response) }

  /// A whole request has come.
  func prove() {
    guard !isProven else { return }
    isProven = true
    limiter.prove(host)
  }
}
