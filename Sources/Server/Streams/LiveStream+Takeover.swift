internal import FMP4
internal import Ingest

/// Who may take a name over from the publisher that holds it.
extension LiveStream {
  /// Why a newcomer does not get the name; nil where it does.
  ///
  /// - Parameters:
  ///   - lastTakeover: when the name last changed hands, monotonic, in nanoseconds.
  ///   - now: monotonic, in nanoseconds.
  func refusal(
    of request: PublishRequest, right: PublishRight, holder: Holder, lastTakeover: Int64?, now: Int64
  ) -> PublishRefusal? {
    let isSilent = now &- holder.lastReceived >= StreamSettings.holderGrace.nanoseconds
    let isNeighbour = request.host != nil && request.host == holder.host
    switch right {
    case .unproven: return isSilent ? nil : .busy(stream: name, holder: holder.remoteAddress)
    case .keyForAllNames where !isSilent && !isNeighbour:
      return .busy(stream: name, holder: holder.remoteAddress)
    case .keyForAllNames, .keyOfName:
      let interval = StreamSettings.takeoverInterval.nanoseconds
      guard let lastTakeover, now &- lastTakeover < interval else { return nil }
      let seconds = Int((interval &- (now &- lastTakeover)) / 1_000_000_000) + 1
      return .tooManyTakeovers(stream: name, retryAfterSeconds: seconds)
    }
  }
}
