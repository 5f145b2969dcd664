internal import Base
internal import Publishing

/// Sinks that are attached while the stream runs: recordings that are started by hand.
extension LiveStream {
  package enum Attachment: Sendable, Hashable {
    case attached
    /// The stream has ended.
    case notLive
    /// The publisher does not allow a recording.
    case unwanted
    /// The disk has not closed the files of earlier recordings (`ClosingSinks.limit`).
    case tooManyClosing
  }

  /// Attaches a sink to the running stream. It receives the parameters, and the newest segment so far, if decoding can start
  /// with it. After that it receives every event.
  package func attach(_ sink: any FragmentSink) -> Attachment {
    state.withLock { state in
      guard state.life.phase != .ended else { return .notLive }
      guard state.publisher.requestedRecording != .never else { return .unwanted }
      guard state.subscribers.hasRoomForSinks() else { return .tooManyClosing }
      state.subscribers.attach(sink, to: state.life.epoch)
      return .attached
    }
  }

  /// Sinks of ended epochs that still have open files.
  var closing: ClosingSinks { state.withLock { $0.subscribers.closing } }

  /// The number of these sinks.
  func countClosing() -> Int { state.withLock { $0.subscribers.closing.count() } }

  /// Ends the sinks of a type that are meant by `stop`, and detaches them. They are counted until their files are closed.
  package func detach<Sink: FragmentSink>(all kind: Sink.Type, where isMeant: (Sink) -> Bool, _ stop: (Sink) -> Void) {
    state.withLock { state in
      let meant = state.subscribers.sinks.compactMap { $0 as? Sink }.filter(isMeant)
      for sink in meant { stop(sink) }
      state.subscribers.detach { sink in meant.contains { $0 === sink } }
    }
  }

  /// Detaches a sink that was stopped; it receives no more events.
  package func detach(_ sink: any FragmentSink) {
    state.withLock { state in state.subscribers.detach { $0 === sink } }
  }
}
