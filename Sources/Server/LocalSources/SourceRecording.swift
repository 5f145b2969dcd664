internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// A recording of a local source, from a key frame until it or the source is stopped, on air or off. The published stream may not
/// exist, and begins anew at time 0 each time the source goes on air. The recording therefore cuts the source's samples itself,
/// as a stream does, for its recorder alone.
final class SourceRecording: MediaSink {
  let recorder: Recorder
  private let logger: Logger
  /// Nil once it has ended.
  private let epoch: RankedMutex<Epoch?>

  /// - Parameter settings: those of streams, which also apply to the cutting of recordings.
  init(recorder: Recorder, settings: StreamSettings, logger: Logger) {
    self.recorder = recorder
    self.logger = logger
    // The recorder keeps what waits for the disk.
    epoch = RankedMutex(.sourceRecording, Epoch(id: "recording", settings: settings.forOwnUse))
  }

  /// More may still be recorded.
  var isActive: Bool { recorder.isActive }

  func receive(_ event: MediaEvent) -> SinkVerdict {
    epoch.withLock { epoch in
      guard epoch != nil, recorder.isActive else {
        epoch = nil
        return .closed(.finished)
      }
      do {
        epoch?.alignTracks(at: recorder.splitsAt)
        for stored in try epoch?.receive(event) ?? [] { recorder.receive(stored) }
      } catch {
        logger.of(recorder.stream).error("recording stops: \(error)")
        recorder.stop()
        epoch = nil
        return .closed(.failed("\(error)"))
      }
      if case .end = event { epoch = nil }
      return .accepted
    }
  }

  /// Ends it and makes a movie of everything received. False if it has ended already.
  func stop() -> Bool {
    epoch.withLock { epoch in
      for stored in (try? epoch?.interrupt()) ?? [] {
        // Nothing follows the end, so a discontinuity has no meaning.
        if case .discontinuity = stored { continue }
        recorder.receive(stored)
      }
      epoch = nil
      return recorder.stop()
    }
  }

  /// Ends it and removes the file being written. False if it has ended already.
  func cancel() -> Bool {
    epoch.withLock { epoch in
      epoch = nil
      return recorder.cancel()
    }
  }

  func carries(_ event: InBandEvent) {
    guard case .captions(let track, let services) = event else { return }
    epoch.withLock { epoch in _ = epoch?.note(services, of: track) }
  }

  func warn(_ warning: PublicationWarning) {}
  func withdraw(_ warning: PublicationWarning) {}
}
