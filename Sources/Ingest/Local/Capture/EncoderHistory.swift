/// What has befallen a stream's encoders, and what follows from it. A value: troubles in, decisions out.
struct EncoderHistory {
  enum Trouble: Sendable, Hashable, CustomStringConvertible {
    /// It refused, with its reason.
    case failed(String)
    /// It did not come back within so many nanoseconds.
    case stalled(nanoseconds: Int64)

    var description: String {
      switch self {
      case .failed(let reason): "the encoder failed (\(reason))"
      case .stalled(let nanoseconds): "the encoder did not answer for \(nanoseconds / 1_000_000_000) s"
      }
    }
  }

  enum Decision: Sendable, Hashable {
    /// A new encoder, which begins with a key frame.
    case rebuild
    case giveUp(String)
  }

  /// Encoders that are passed over while there are others.
  private(set) var avoided: Set<VideoEncoderName> = []
  /// Encoders that were built anew so far.
  private(set) var rebuilt = 0
  /// When the latest troubles were, on the monotonic clock.
  private var recent: [Int64] = []

  /// Troubles count together for so many nanoseconds.
  static let memory: Int64 = 60_000_000_000
  /// More troubles within that time end the capture. An encoder that stalls holds its thread, and is given up with it.
  static let patience = 4

  mutating func decide(on trouble: Trouble, of encoder: VideoEncoderName?, at now: Int64) -> Decision {
    recent.removeAll { now &- $0 > Self.memory }
    recent.append(now)
    guard recent.count <= Self.patience else {
      return .giveUp("\(trouble), for the \(recent.count)th time within a minute")
    }
    // Once is chance.
    if recent.count > 1, let encoder { avoided.insert(encoder) }
    rebuilt += 1
    return .rebuild
  }
}
