internal import Base
internal import FMP4

/// Streams that have no media give their places away where places run out.
extension LiveStream {
  /// A stream whose place another one may have.
  struct Vacancy: Sendable {
    /// The publisher's address; nil if it has none.
    let host: String?
    let since: MonotonicTime
    /// Whether the last publisher's connection was made.
    let hasConnected: Bool
    let isOver: Bool
  }

  static let gaveWay = EndReason.connectionLost("it had not connected, and others needed its place")

  /// Nil while it has media, or a publisher that is connected.
  var vacancy: Vacancy? {
    // One with media has a target, which is read without the lock.
    guard targetDuration == nil else { return nil }
    return state.withLock { vacancy($0) }
  }

  private func vacancy(_ state: borrowing State) -> Vacancy? {
    guard state.life.isEmpty else { return nil }
    let hasConnected = state.publisher.hasConnected
    guard let holder = state.publisher.holder else {
      return Vacancy(
        host: state.publisher.lastHost, since: state.life.phaseSince, hasConnected: hasConnected, isOver: true)
    }
    return hasConnected ? nil : Vacancy(host: holder.host, since: holder.since, hasConnected: false, isOver: false)
  }

  /// Ends a stream without media, and its publication, which has not connected. False where it has media by now, or a publisher that
  /// is connected: it goes on.
  func giveWay() -> Bool {
    let (gives, former) = state.withLock { state -> (Bool, PublisherSlot.Holder?) in
      guard vacancy(state) != nil else { return (false, nil) }
      // Nobody has seen it, so its events are not waited for: another stream of this name may begin at once.
      makeTurns(&state)
      guard state.life.phase != .ended else { return (true, nil) }
      let former = state.publisher.dismiss(Self.gaveWay)
      turn(.ended(Self.gaveWay), &state)
      makeTurn(&state)
      return (true, former)
    }
    former?.evict(Self.gaveWay)
    return gives
  }
}
