internal import Basics
internal import FMP4
internal import Ingest

/// Sinks that come and go while the stream runs: recordings that are started by hand.
extension LiveStream {
  enum Attachment: Sendable, Hashable {
    case attached
    /// The stream is over.
    case notLive
    /// Its publisher does not want to be recorded.
    case unwanted
    /// The disk has not closed the files of earlier recordings (`ClosingSinks.limit`).
    case tooManyClosing
  }

  /// Adds a sink to the running stream. It is told at once what the parameters are, and of the newest segment what
  /// there is, if decoding can start with it; from then on of everything.
  func attach(_ sink: any FragmentSink) -> Attachment {
    state.withLock { state in
      guard state.life.phase != .ended else { return .notLive }
      guard state.publisher.recordingWish != .never else { return .unwanted }
      guard state.subscribers.hasRoomForSinks() else { return .tooManyClosing }
      state.subscribers.attach(sink, to: state.life.epoch)
      return .attached
    }
  }

  /// What follows an epoch that is over, and has files open still.
  var closing: ClosingSinks { state.withLock { $0.subscribers.closing } }

  /// How many those are.
  func countClosing() -> Int { state.withLock { $0.subscribers.closing.count() } }

  /// The sinks of a kind hear no more of the stream.
  func detach<Sink: FragmentSink>(all kind: Sink.Type) -> [Sink] {
    state.withLock { state in
      defer { state.subscribers.detach { $0 is Sink } }
      return state.subscribers.sinks.compactMap { $0 as? Sink }
    }
  }

  /// The sink hears no more of the stream.
  func detach(_ sink: any FragmentSink) {
    state.withLock { state in state.subscribers.detach { $0 === sink } }
  }
}
