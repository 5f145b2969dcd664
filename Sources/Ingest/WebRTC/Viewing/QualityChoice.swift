internal import Base
internal import NIOCore

/// When a viewer gets a smaller video than the best one, and when the better one again. A value type.
struct QualityChoice {
  /// What it could get: so many bytes a second, and whether it comes now.
  struct Video {
    var bytesPerSecond: Int64
    var isFresh: Bool
  }

  /// When it was too slow.
  private var skips: [MonotonicTime] = []
  /// When it went to a better video, or to a smaller one.
  private var changedAt: MonotonicTime
  private var hasRisen = false
  /// How long it stays before it tries a better one.
  private var patience = WebRTCLimits.leastPatience

  init(_ now: MonotonicTime) { changedAt = now }

  /// What a viewer does that could not take what it should have got.
  enum Step: Equatable {
    /// Goes on with a later key frame.
    case skip
    /// Goes over to the video of this place.
    case change(Int)
    /// Is ended.
    case end
  }

  /// It was too slow for the video of the place `shown` among `videos`, the largest first.
  ///
  /// - Parameter estimate: what its network carries, in bytes per second, if it is less than it should get.
  mutating func isSlow(_ shown: Int?, _ videos: [Video], estimate: Int64?, now: MonotonicTime) -> Step {
    skips = skips.filter { now &- $0 < WebRTCLimits.skipTime } + [now]
    // One hole alone may be an accident.
    if let shown, estimate != nil || skips.count > 1, let less = less(shown, videos, estimate) {
      if now &- changedAt >= patience {
        patience = WebRTCLimits.leastPatience
      } else if hasRisen {
        patience = min(2 &* patience, WebRTCLimits.mostPatience)
      }  // else it is still falling, and what it learned by its tries holds
      (skips, changedAt, hasRisen) = ([], now, false)
      return .change(less)
    }
    return skips.count > WebRTCLimits.skips ? .end : .skip
  }

  /// The largest of the smaller ones that the estimate allows, else the smallest of all.
  private func less(_ shown: Int, _ videos: [Video], _ estimate: Int64?) -> Int? {
    guard videos.indices.contains(shown) else { return nil }
    let smaller = videos.indices.filter {
      $0 > shown && videos[$0].isFresh && videos[$0].bytesPerSecond < videos[shown].bytesPerSecond
    }
    guard let estimate else { return smaller.first }
    return smaller.first { videos[$0].bytesPerSecond <= estimate / 10 * 9 } ?? smaller.last
  }

  /// What it does whose video has stopped, as that of a worker that was lost: it goes over to a smaller one, else to a larger
  /// one. Nil: it waits.
  ///
  /// - Parameter isLost: the stream goes on without that video, and for long.
  static func afterStop(of shown: Int?, _ videos: [Video], isLost: Bool) -> Step? {
    let others = videos.indices.filter { videos[$0].isFresh }
    if let other = others.first(where: { $0 > shown ?? -1 }) ?? others.last { return .change(other) }
    return isLost ? .end : nil
  }

  /// The better video that it tries now, after it was calm for long; nil for none.
  mutating func rise(_ shown: Int?, _ videos: [Video], now: MonotonicTime) -> Int? {
    guard let shown, now &- max(changedAt, skips.last ?? .min) >= patience,
      let better = videos.indices.last(where: { $0 < shown && videos[$0].isFresh })
    else { return nil }
    (changedAt, hasRisen) = (now, true)
    return better
  }
}
