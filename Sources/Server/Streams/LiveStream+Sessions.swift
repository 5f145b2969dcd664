internal import Base
internal import FMP4
internal import Logging

/// Sessions that are ended on request.
extension LiveStream {
  /// The session of its publisher; nil while there is none.
  var publisherSession: PublisherSession? {
    state.withLock { state in
      state.publisher.holder.map { holder in
        PublisherSession(
          id: holder.id, stream: name, protocolName: state.publisher.lastProtocol,
          remoteAddress: holder.host.map { _ in holder.remoteAddress },
          software: holder.software, since: clock.reading.wallTime(at: holder.since), bytes: holder.bytes)
      }
    }
  }

  /// Disconnects the publisher of a session; the stream goes on as after a lost connection. False if the session is over.
  ///
  /// - Parameter who: the administrator, for the event.
  package func endSession(_ id: SessionID, by who: String? = nil) -> Bool {
    let reason = EndReason.failed("an administrator ended the session")
    let former = state.withLock { state -> PublisherSlot.Holder? in
      guard state.publisher.holder?.id == id else { return nil }
      let former = state.publisher.dismiss(reason)
      turn(.lost(reason), by: who, &state)
      return former
    }
    former?.evict(reason)
    return former != nil
  }

  /// Disconnects the publisher and ends the stream.
  ///
  /// - Parameter who: the administrator, for the event.
  package func endOnRequest(by who: String? = nil) {
    let reason = EndReason.failed("an administrator ended the stream")
    let former = state.withLock { state in
      let former = state.publisher.dismiss(reason)
      turn(.ended(.finished), by: who, &state)
      return former
    }
    logger.notice("ended by an administrator")
    former?.evict(reason)
  }
}
