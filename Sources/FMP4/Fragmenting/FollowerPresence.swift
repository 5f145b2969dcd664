/// Whether a track that follows the leading one keeps up with it. Fragments wait for such tracks alone. A track is absent
/// once it is silent for far longer than usual. It is present again with the first sample that soon follows another one.
/// Lags are microseconds from the end of its newest sample to the leading track's newest decode time.
struct FollowerPresence: Sendable {
  private(set) var isAbsent = false
  /// The longest lag in this stretch of samples, and in the one before. Nil before the end of the first stretch.
  private var longest: (now: Int64, before: Int64?) = (0, nil)
  /// Samples in this stretch.
  private var count = 0

  /// Samples after which the lags before them are forgotten, two stretches later at most.
  private static let stretch = 64
  private static let patience = CutPolicy.followerPatience.rescaled(to: 1_000_000)
  private static let leastPatience = CutPolicy.leastFollowerPatience.rescaled(to: 1_000_000)

  /// The longest lag that ends of segments wait for until it is allowed for, in microseconds.
  static let learnableLag = 2 * patience

  /// The longest lag at which the track is still awaited: three times the usual one.
  var longestLag: Int64 {
    guard let before = longest.before else { return Self.patience }
    return min(Self.patience, max(Self.leastPatience, 3 * max(longest.now, before)))
  }

  /// A sample came, at that lag of the ones before it. After a pause for which nothing waits, the track is still absent.
  mutating func came(after lag: Int64) {
    isAbsent = lag > Self.patience
    guard !isAbsent else { return }
    longest.now = max(longest.now, lag)
    count += 1
    guard count == Self.stretch else { return }
    (longest, count) = ((0, longest.now), 0)
  }

  /// No sample came in time.
  mutating func fellSilent() { isAbsent = true }
}
