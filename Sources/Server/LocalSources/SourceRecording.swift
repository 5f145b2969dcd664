internal import Basics
internal import FMP4
internal import Ingest
internal import Logging

/// A recording of one of the server's own sources, from a key frame on until it is stopped or the source is: on air or off
/// makes no difference to it. What viewers get may not be there at all, begins anew with each time on air and counts from 0,
/// so it cuts the source's samples by itself, as a stream does, for its recorder alone.
final class SourceRecording: MediaSink {
  let recorder: Recorder
  private let logger: Logger
  /// Nil once it has come to its end.
  private let epoch: RankedMutex<Epoch?>

  /// What waits for the disk is kept by the recorder; nobody else asks for a segment.
  private static let window = MediaTime(milliseconds: 1000)

  /// - Parameter settings: of streams: a recording is cut as they are.
  init(recorder: Recorder, settings: StreamSettings, logger: Logger) {
    self.recorder = recorder
    self.logger = logger
    var settings = settings
    settings.window = Self.window
    settings.layout = .interleaved
    (settings.ladder, settings.audio) = ([], nil)
    epoch = RankedMutex(.take, Epoch(id: "take", settings: settings))
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

  /// Ends it with all that has come; what there is becomes a movie. False when it has ended already.
  func stop() -> Bool {
    epoch.withLock { epoch in
      for stored in (try? epoch?.interrupt()) ?? [] {
        // Nothing follows that could break off.
        if case .discontinuity = stored { continue }
        recorder.receive(stored)
      }
      epoch = nil
      return recorder.stop()
    }
  }

  /// Ends it and removes the file being written. False when it has ended already.
  func cancel() -> Bool {
    epoch.withLock { epoch in
      epoch = nil
      return recorder.cancel()
    }
  }

  func warn(_ warning: PublicationWarning) {}
  func withdraw(_ warning: PublicationWarning) {}
}
