internal import Base
package import FMP4
internal import Logging
package import Publishing
package import Recording
internal import Streams

/// A recording of a local source, from a key frame until it or the source is stopped, on air or off. The published stream may not
/// exist, and begins anew at time 0 each time the source goes on air. The recording therefore cuts the source's samples itself,
/// as a stream does, for its recorder alone.
package final class SourceRecording: MediaSink {
  package let recorder: Recorder
  private let logger: Logger
  /// The epoch: nil once it has ended. The reason: nil unless the source ended it.
  private let state: RankedMutex<(epoch: Epoch?, reason: EndReason?)>

  /// - Parameter settings: those of streams, which also apply to the cutting of recordings.
  init(recorder: Recorder, settings: StreamSettings, logger: Logger) {
    self.recorder = recorder
    self.logger = logger
    // The recorder keeps what waits for the disk.
    state = RankedMutex(.sourceRecording, (Epoch(id: "recording", settings: settings.forOwnUse), nil))
  }

  /// More may still be recorded.
  package var isActive: Bool { recorder.isActive }

  /// Why the source ended it. Known once its recorder is closed, which may be before the source's own state tells. Nil if the
  /// recording was ended otherwise.
  package var endReason: EndReason? { state.withLock { $0.reason } }

  package func receive(_ event: MediaEvent) -> SinkVerdict {
    state.withLock { state in
      guard state.epoch != nil, recorder.isActive else {
        state.epoch = nil
        return .closed(.finished)
      }
      do {
        state.epoch?.alignTracks(at: recorder.splitsAt)
        for stored in try state.epoch?.receive(event) ?? [] { recorder.receive(stored) }
      } catch {
        logger.of(recorder.stream).error("recording stops: \(error)")
        recorder.stop()
        state.epoch = nil
        return .closed(.failed("\(error)"))
      }
      if case .end(let reason) = event { state = (nil, reason) }
      return .accepted
    }
  }

  /// Ends it and makes a movie of everything received. False if it has ended already.
  func stop() -> Bool {
    state.withLock { state in
      for stored in (try? state.epoch?.interrupt()) ?? [] {
        // Nothing follows the end, so a discontinuity has no meaning.
        if case .discontinuity = stored { continue }
        recorder.receive(stored)
      }
      state.epoch = nil
      return recorder.stop()
    }
  }

  /// Ends it and removes the file being written. False if it has ended already.
  func cancel() -> Bool {
    state.withLock { state in
      state.epoch = nil
      return recorder.cancel()
    }
  }

  package func carries(_ event: InBandEvent) {
    guard case .captions(let track, let services) = event else { return }
    state.withLock { state in _ = state.epoch?.note(services, of: track) }
  }

  package func warn(_ warning: PublicationWarning) {}
  package func withdraw(_ warning: PublicationWarning) {}
}
