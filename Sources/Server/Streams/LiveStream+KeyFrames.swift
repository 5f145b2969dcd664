internal import FMP4
internal import Ingest

/// When the publication's encoder is asked for a key frame.
extension LiveStream {
  /// Segments end with a key frame. Where somebody waits for the newest one's end, the encoder is asked for it as soon as the
  /// segment has lasted as long as it is meant to; once a segment, however many wait.
  func hastenSegment(_ state: inout State) {
    guard let segment = state.epoch.window.segments.last, !segment.isComplete,
      segment.duration >= settings.segmentTarget,
      state.hastenedSegment != segment.sequenceNumber, state.rungsAwaitSegment || state.viewersAwaitSegment
    else { return }
    state.hastenedSegment = segment.sequenceNumber
    state.holder?.askForKeyFrame?()
  }
}

extension LiveStream.State {
  /// Rungs were interrupted, and begin again with a segment.
  fileprivate var rungsAwaitSegment: Bool { awaitsSegment && transcoder?.status.worker == .running }

  /// Viewers wait for the first segment: their players take a playlist without one for a broken one. Only where the target
  /// duration is decided: a first group that is shorter than the others would promise too short a one.
  fileprivate var viewersAwaitSegment: Bool {
    epoch.window.targetDuration != nil && !epoch.isReleased && waiting.isAwaited(.release)
  }
}
