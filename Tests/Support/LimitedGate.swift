package import FMP4
package import Logging
package import Publishing
internal import Synchronization
internal import Testing

/// A gate that admits one publication and ends it after so many events; it keeps them.
package final class LimitedGate: PublishGate, MediaSink {
  private struct State {
    var request: PublishRequest?
    var events: [MediaEvent] = []
    var lost: [MediaKind] = []
  }

  private let state = Mutex(State())
  private let limit: Int
  private let refusal: PublishRefusal?

  package init(limit: Int = .max, refusal: PublishRefusal? = nil) {
    self.limit = limit
    self.refusal = refusal
  }

  package var request: PublishRequest? { state.withLock { $0.request } }
  package var events: [MediaEvent] { state.withLock { $0.events } }
  package var lost: [MediaKind] { state.withLock { $0.lost } }

  package var samples: [Sample] {
    events.compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
  }
  package var tracks: [[TrackDescription]] {
    events.compactMap { if case .tracks(let tracks) = $0 { tracks } else { nil } }
  }
  package var ending: EndReason? { if case .end(let reason)? = events.last { reason } else { nil } }

  package func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    state.withLock { $0.request = request }
    if let refusal { throw refusal }
    return self
  }

  package func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      state.events.append(event)
      return state.events.count >= limit ? .closed(.replaced) : .accepted
    }
  }

  package func lost(_ kind: MediaKind) { state.withLock { $0.lost.append(kind) } }
  package func warn(_: PublicationWarning) {}
  package func withdraw(_: PublicationWarning) {}
}

extension Logger {
  /// For what is not looked at.
  package static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
