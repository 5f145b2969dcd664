internal import Base
internal import NIOCore
internal import Publishing

/// The streams that are watched at a listener. Used on its event loop.
final class StreamRelays {
  private let clock: SteadyClock
  private let loop: any EventLoop
  private var relays: [ObjectIdentifier: StreamRelay] = [:]

  init(_ clock: SteadyClock, on loop: any EventLoop) { (self.clock, self.loop) = (clock, loop) }

  /// Nil if too many streams are watched.
  func relay(of stream: any WatchedStream) -> StreamRelay? {
    let key = ObjectIdentifier(stream)
    if let known = relays[key] { return known }
    guard relays.count < WebRTCLimits.relays else { return nil }
    let relay = StreamRelay(stream, on: loop, clock: clock) { [weak self] in
      self?.bytesOfEach ?? 0
    } whenUnused: { [weak self] in
      self?.drop($0)
    }
    relays[key] = relay
    return relay
  }

  func drop(_ relay: StreamRelay) {
    let key = ObjectIdentifier(relay.stream)
    if relays[key] === relay { relays[key] = nil }
  }

  /// Bytes that are kept of each stream.
  private var bytesOfEach: Int { min(WebRTCLimits.keptBytes, WebRTCLimits.keptBytesInAll / max(1, relays.count)) }

  /// Ends all viewers.
  func end(_ reason: String) { for relay in relays.values { relay.end(reason) } }
}
