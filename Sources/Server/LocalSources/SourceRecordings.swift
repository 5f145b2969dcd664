package import Logging
package import Publishing
package import Recording
package import Streams

/// Starts, stops and cancels recordings of the local sources, on air and off.
package struct SourceRecordings: Sendable {
  package let library: RecordingLibrary
  /// Recordings are cut as streams are.
  package let settings: @Sendable (StreamName) -> StreamSettings
  package let logger: Logger

  package init(
    library: RecordingLibrary, settings: @escaping @Sendable (StreamName) -> StreamSettings, logger: Logger
  ) {
    (self.library, self.settings, self.logger) = (library, settings, logger)
  }

  /// The requested action.
  package enum Action: Sendable {
    case start(RecordingOrder = RecordingOrder())
    case stop, cancel
  }

  package func perform(_ action: Action, on source: LocalSource) -> RecordingAnswer {
    switch action {
    case .start(let order): start(source, order)
    case .stop: source.endRecording { $0.stop() }
    case .cancel: source.endRecording { $0.cancel() }
    }
  }

  private func start(_ source: LocalSource, _ order: RecordingOrder) -> RecordingAnswer {
    // A source that is recorded with its stream is not recorded twice.
    if case .live = source.activity, library.isRecording(source.name) { return .refused(.alreadyRecording) }
    guard !library.isNeverRecorded(source.name) else { return .refused(.neverRecorded) }
    // The tracks of a source that does not run are not known.
    let tracks = source.tracks
    guard tracks.isEmpty || order.tracks.isThere(in: tracks) else { return .refused(.noSuchTrack) }
    return source.record {
      SourceRecording(
        recorder: library.makeSourceRecorder(source.name, order), settings: settings(source.name), logger: logger)
    }
  }
}
