internal import NIOCore

/// Who is at the other end of a connection, as the census counts it. Confined to the channel's event loop.
final class HTTPPeer {
  /// Without the port; empty for channels that have none.
  let address: String
  let source: RequestSource
  /// The later the connection came, the higher.
  let number: Int
  /// Whether the server has room for it: else all it hears is that the server is full.
  let isServed: Bool
  /// Whether a whole request has come.
  private(set) var isProven = false

  var isTLS: Bool { source.isTLS }

  private let census: ConnectionCensus
  private var polls: PollLimit

  /// Counts the connection in until the channel closes; nil where it is to be closed without a word.
  init?(of channel: any Channel, isTLS: Bool, services: HTTPServices, loop: LoopContext) {
    let census = services.census
    let address = channel.remoteAddress?.ipAddress ?? ""
    let source = RequestSource(peer: channel.remoteAddress, isTLS: isTLS, proxies: services.proxies)
    let admission = census.admit(address, isTLS: isTLS, isProxy: source.isProxy)
    guard admission != .dropped else { return nil }
    self.address = address
    number = census.nextNumber()
    self.source = source
    isServed = admission == .served
    self.census = census
    polls = PollLimit(repeatsPerSecond: services.limits.repeatedPolls, loop: loop)
    channel.closeFuture.assumeIsolated().whenComplete { _ in
      census.leave(address, isServed: admission == .served, isProven: self.isProven)
    }
  }

  /// Whether this answer, which is about to be given, is one of too many in a row.
  func polls(_ response: HTTPResponse) -> Bool { polls.isExceeded(by: response) }

  /// A whole request has come.
  func prove() {
    guard !isProven else { return }
    isProven = true
    census.prove(address)
  }
}
