internal import FMP4
internal import Ingest
internal import Logging
internal import Synchronization

/// Sinks that come and go while the stream runs: recordings that are started by hand.
extension LiveStream {
  enum Attachment: Sendable, Hashable {
    case attached
    /// The stream is over.
    case notLive
    /// Its publisher does not want to be recorded.
    case unwanted
  }

  /// Adds a sink to the running stream. It is told at once what the parameters are, and of the newest segment what
  /// there is, if decoding can start with it; from then on of everything.
  func attach(_ sink: any FragmentSink) -> Attachment {
    state.withLock { state in
      guard state.phase != .ended else { return .notLive }
      guard state.recordingWish != .never else { return .unwanted }
      if let initSegment = state.epoch.initSegment { sink.receive(.initialization(initSegment)) }
      if let anchor = state.epoch.anchor { sink.receive(.clock(anchor)) }
      for fragment in state.newestSegment { sink.receive(.fragment(fragment)) }
      state.sinks.append(sink)
      return .attached
    }
  }

  /// Whether the stream may have sinks for another epoch, while so many of older ones still have files open.
  func canKeep(_ closing: Int) -> Bool {
    guard closing >= ClosingSinks.limit else { return true }
    logger.error(
      "this publication is not recorded: the files of \(closing) earlier ones are still being written; look at the disk's speed"
    )
    return false
  }

  /// What follows an epoch that is over, and has files open still.
  var closing: ClosingSinks { state.withLock { $0.closing } }

  /// How many those are.
  func countClosing() -> Int { state.withLock { $0.closing.count() } }

  /// The sinks of a kind hear no more of the stream.
  func detach<Sink: FragmentSink>(all kind: Sink.Type) -> [Sink] {
    state.withLock { state in
      let found = state.sinks.compactMap { $0 as? Sink }
      state.sinks.removeAll { $0 is Sink }
      return found
    }
  }

  /// The sink hears no more of the stream.
  func detach(_ sink: any FragmentSink) {
    state.withLock { state in state.sinks.removeAll { $0 === sink } }
  }
}

extension LiveStream.State {
  mutating func noteNewest(_ published: PublishedFragment) {
    if published.fragment.startsSegment {
      newestSegment = published.fragment.isIndependent ? [published] : []
    } else if !newestSegment.isEmpty {
      newestSegment.append(published)
    }
  }
}
