internal import Base
internal import LibAV

/// Failures of a stream's encoders, and the decisions after them. A value type.
struct EncoderHistory {
  enum Trouble: Sendable, Hashable, CustomStringConvertible {
    /// It failed, with its reason.
    case failed(String)
    /// It did not return within this many nanoseconds.
    case stalled(nanoseconds: Int64)

    var description: String {
      switch self {
      case .failed(let reason): "the encoder failed (\(reason))"
      case .stalled(let nanoseconds): "the encoder did not respond for \(nanoseconds / 1_000_000_000) s"
      }
    }
  }

  enum Decision: Sendable, Hashable {
    /// Start a new encoder, which begins with a key frame.
    case rebuild
    case giveUp(String)
  }

  /// Encoders to avoid while there are others.
  private(set) var avoided: Set<VideoEncoderName> = []
  /// Number of encoders that were restarted.
  private(set) var rebuilt = 0
  /// Times of the latest failures.
  private var recent: [MonotonicTime] = []

  /// Failures within this many nanoseconds count together.
  static let memory: Int64 = 60_000_000_000
  /// More failures within that time end the capture. A stalled encoder is abandoned with its thread.
  static let patience = 4

  mutating func decide(on trouble: Trouble, of encoder: VideoEncoderName?, at now: MonotonicTime) -> Decision {
    recent.removeAll { now &- $0 > Self.memory }
    recent.append(now)
    guard recent.count <= Self.patience else {
      return .giveUp("\(trouble), for the \(recent.count)th time within a minute")
    }
    // A single failure may be chance.
    if recent.count > 1, let encoder { avoided.insert(encoder) }
    rebuilt += 1
    return .rebuild
  }
}
