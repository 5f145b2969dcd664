/// How far apart the sync samples of the leading track are, and whether that can be relied on. Times are decode times
/// in the track's ticks.
struct GOPCadence: Sendable {
  private(set) var lastSync: Int64?
  /// The longest distance so far; 0 before the second sync sample.
  private(set) var longest: Int64 = 0
  private var latest: Int64 = 0
  /// Distances in a row that were equal.
  private var equalCount = 0

  /// Distances in a row that must be equal before the next one is foretold: more each time that it was foretold wrongly, as
  /// with encoders that place key frames or B-frames by what they see.
  private var proof = Self.leastProof
  private static let leastProof = 2
  private static let mostProof = 32

  /// Takes the next sync sample. Returns the distance to the one before where it is the longest so far.
  mutating func note(syncAt time: Int64, timescale: UInt32) -> Int64? {
    defer { lastSync = time }
    guard let lastSync else { return nil }
    let group = time &- lastSync
    // A rate that is no whole number of ticks makes groups differ by one.
    let isEqual = (group &- latest).magnitude <= UInt64(timescale / 1000)
    if !isEqual, equalCount >= proof { proof = min(4 * proof, Self.mostProof) }
    equalCount = isEqual ? equalCount + 1 : 1
    latest = group
    guard group > longest else { return nil }
    longest = group
    return group
  }

  /// Every sample is a sync sample: the next one, too.
  mutating func followsEverySample(at time: Int64, duration: Int64) {
    lastSync = time
    latest = duration
    equalCount = proof
  }

  /// Where the next sync sample is expected; nil where the distances vary or too few are known.
  var nextSync: Int64? {
    guard equalCount >= proof, let lastSync else { return nil }
    return lastSync &+ latest
  }

  /// The steady distance; nil where there is none.
  var steadyGroup: Int64? { equalCount >= proof && latest > 0 ? latest : nil }
}
