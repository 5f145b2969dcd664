internal import Base
internal import Synchronization

/// Counts the open streams of events, of all clients and of each address.
final class EventStreams: Sendable {
  static let limit = 64
  static let limitPerAddress = 16

  private let open = Mutex<[NetworkAddress?: Int]>([:])

  /// Nil if there are too many.
  func take(_ client: NetworkAddress?) -> Place? {
    let host = client?.host
    let isFree = open.withLock { open in
      guard open.values.reduce(0, +) < Self.limit, open[host, default: 0] < Self.limitPerAddress else { return false }
      open[host, default: 0] += 1
      return true
    }
    return isFree ? Place(streams: self, host: host) : nil
  }

  private func giveBack(_ host: NetworkAddress?) {
    open.withLock { open in
      let left = open[host, default: 1] - 1
      open[host] = left > 0 ? left : nil
    }
  }

  /// A place, given back with its last reference: so any end of a response does it.
  final class Place: Sendable {
    private let streams: EventStreams
    private let host: NetworkAddress?

    fileprivate init(streams: EventStreams, host: NetworkAddress?) { (self.streams, self.host) = (streams, host) }

    deinit { streams.giveBack(host) }
  }
}
