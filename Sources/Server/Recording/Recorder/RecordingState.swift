internal import Basics

/// How far a recording is, in numbers.
struct RecordingProgress: Sendable, Hashable {
  /// Path of the file, below the recordings folder: `cam/20261121T072410Z.mp4`. While it is written the file's name
  /// ends in `.part.mp4`.
  var file: String
  /// Bytes of the file.
  var bytes: UInt64
  /// Bytes of it that a power cut would take.
  var unsyncedBytes: UInt64 = 0
  /// Of media.
  var seconds: Double
  /// Where media is missing, in order.
  var gaps: [RecordingGap] = []
}

/// What a recording is doing, with what is known then and nothing else. Transitions that make no sense are refused.
enum RecordingState: Sendable, Hashable {
  /// Nothing has come yet.
  case idle
  case running(RecordingProgress)
  /// The file is whole and has its final name, or is whole and fragmented and gets it at the next start.
  case completed(RecordingProgress)
  /// The disk takes no more. What had been written is kept; while the stream lives, recording goes on in another file
  /// as soon as it can.
  case failed(RecordingProgress?, reason: String)
  /// Somebody did not want it: the file is gone.
  case cancelled

  enum Transition: Sendable, Hashable {
    case done
    case refused
  }

  /// Fragments are being written: from `idle`, while `running`, or again after `failed`; the file may be another one
  /// than before.
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

  /// What had failed was only to finish the file, and a later try did it.
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
