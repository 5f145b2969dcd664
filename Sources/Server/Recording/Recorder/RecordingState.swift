package import RecordingFiles
/// Progress of a recording, in numbers.
package struct RecordingProgress: Sendable, Hashable {
  /// Path of the file below the recordings folder: `cam/20261121T072410Z.mp4`. While it is written, the name on disk ends in
  /// `.part.mp4`.
  package var file: String
  /// Bytes of the file.
  package var bytes: UInt64
  /// Bytes that are not durable yet: a power failure would lose them.
  package var unsyncedBytes: UInt64 = 0
  /// Seconds of media.
  package var seconds: Double
  /// Places where media is missing, in order.
  package var gaps: [RecordingGap] = []
}

/// The state of a recording, with the data known in that state. Transitions that make no sense are refused.
package enum RecordingState: Sendable, Hashable {
  /// Nothing has been recorded yet.
  case idle
  case running(RecordingProgress)
  /// The file is whole. It has its final name, or it is fragmented and gets that name at the next start.
  case completed(RecordingProgress)
  /// The disk failed. What was written is kept. While the stream lives, recording goes on in another file as soon as possible.
  case failed(RecordingProgress?, reason: String)
  /// Cancelled by a client: the file is removed.
  case cancelled

  enum Transition: Sendable, Hashable {
    case done
    case refused
  }

  /// Fragments are being written: from `idle`, while `running`, or again after `failed`. The file may differ from the one before.
  mutating func advance(to progress: RecordingProgress) -> Transition {
    switch self {
    case .idle, .running, .failed:
      self = .running(progress)
      return .done
    case .completed, .cancelled: return .refused
    }
  }

  mutating func complete() -> Transition {
    guard case .running(let progress) = self else { return .refused }
    self = .completed(progress)
    return .done
  }

  /// Only the finishing of the file had failed, and a later attempt succeeded.
  mutating func completeAfterAll() -> Transition {
    guard case .failed(let progress?, _) = self else { return .refused }
    self = .completed(progress)
    return .done
  }

  mutating func fail(_ reason: String) -> Transition {
    switch self {
    case .idle: self = .failed(nil, reason: reason)
    case .running(let progress), .failed(let progress?, _): self = .failed(progress, reason: reason)
    case .failed(nil, _): self = .failed(nil, reason: reason)
    case .completed, .cancelled: return .refused
    }
    return .done
  }

  mutating func cancel() -> Transition {
    switch self {
    case .idle, .running, .failed:
      self = .cancelled
      return .done
    case .completed, .cancelled: return .refused
    }
  }

  /// No further change is possible.
  var isOver: Bool {
    switch self {
    case .idle, .running, .failed: false
    case .completed, .cancelled: true
    }
  }
}
