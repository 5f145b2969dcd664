internal import Ingest
internal import Logging

/// Starts, stops and cancels recordings of the local sources, on air and off.
struct SourceRecordings: Sendable {
  let library: RecordingLibrary
  /// Recordings are cut as streams are.
  let settings: @Sendable (StreamName) -> StreamSettings
  let logger: Logger

  /// The requested action, as the last segment of an address.
  enum Action: String, CaseIterable {
    case start, stop, cancel
  }

  func perform(_ action: Action, on source: LocalSource) -> RecordingAnswer {
    switch action {
    case .start: start(source)
    case .stop: source.endRecording { $0.stop() }
    case .cancel: source.endRecording { $0.cancel() }
    }
  }

  private func start(_ source: LocalSource) -> RecordingAnswer {
    // A source that is recorded with its stream is not recorded twice.
    if case .live = source.activity, library.isRecording(source.name) { return .refused(.alreadyRecording) }
    guard !library.isNeverRecorded(source.name) else { return .refused(.neverRecorded) }
    return source.record {
      SourceRecording(
        recorder: library.makeTakeRecorder(source.name), settings: settings(source.name), logger: logger)
    }
  }
}
