import FMP4
import Publishing
import Logging
import Synchronization
import Testing

/// A gate that admits one publication and ends it after so many events; it keeps them.
final class LimitedGate: PublishGate, MediaSink {
  private struct State {
    var request: PublishRequest?
    var events: [MediaEvent] = []
    var lost: [MediaKind] = []
  }

  private let state = Mutex(State())
  private let limit: Int
  private let refusal: PublishRefusal?

  init(limit: Int = .max, refusal: PublishRefusal? = nil) {
    self.limit = limit
    self.refusal = refusal
  }

  var request: PublishRequest? { state.withLock { $0.request } }
  var events: [MediaEvent] { state.withLock { $0.events } }
  var lost: [MediaKind] { state.withLock { $0.lost } }

  var samples: [Sample] {
    events.compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
  }
  var tracks: [[TrackDescription]] {
    events.compactMap { if case .tracks(let tracks) = $0 { tracks } else { nil } }
  }
  var ending: EndReason? { if case .end(let reason)? = events.last { reason } else { nil } }

  func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
    state.withLock { $0.request = request }
    if let refusal { throw refusal }
    return self
  }

  func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      state.events.append(event)
      return state.events.count >= limit ? .closed(.replaced) : .accepted
    }
  }

  func lost(_ kind: MediaKind) { state.withLock { $0.lost.append(kind) } }
  func warn(_: PublicationWarning) {}
  func withdraw(_: PublicationWarning) {}
}

extension Logger {
  /// For what is not looked at.
  static var silent: Logger { Logger(label: "test") { _ in SwiftLogNoOpLogHandler() } }
}
