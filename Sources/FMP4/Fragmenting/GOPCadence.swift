/// Distance of the leading track's sync samples, and whether it is steady. Times are decode times in the track's ticks.
struct GOPCadence: Sendable {
  private(set) var lastSync: Int64?
  /// The longest distance so far, in ticks. 0 before the second sync sample.
  private(set) var longest: Int64 = 0
  private var latest: Int64 = 0
  /// Number of equal distances in a row.
  private var equalCount = 0

  /// Equal distances in a row that are needed before the next one is predicted. It grows after each wrong prediction:
  /// some encoders place key frames or B-frames by content.
  private var proof = Self.leastProof
  private static let leastProof = 2
  private static let mostProof = 32

  /// Takes the next sync sample. Returns its distance from the last one if it is the longest so far.
  mutating func note(syncAt time: Int64, timescale: UInt32) -> Int64? {
    defer { lastSync = time }
    guard let lastSync else { return nil }
    let group = time &- lastSync
    // If a frame is not a whole number of ticks, GOPs differ by one tick.
    let isEqual = (group &- latest).magnitude <= UInt64(timescale / 1000)
    if !isEqual, equalCount >= proof { proof = min(4 * proof, Self.mostProof) }
    equalCount = isEqual ? equalCount + 1 : 1
    latest = group
    guard group > longest else { return nil }
    longest = group
    return group
  }

  /// Records that every sample is a sync sample, so the next one is too.
  mutating func followsEverySample(at time: Int64, duration: Int64) {
    lastSync = time
    latest = duration
    equalCount = proof
  }

  /// Expected decode time of the next sync sample. Nil while the distances vary or too few are known.
  var nextSync: Int64? {
    guard equalCount >= proof, let lastSync else { return nil }
    return lastSync &+ latest
  }

  /// The steady distance in ticks. Nil if there is none.
  var steadyGroup: Int64? { equalCount >= proof && latest > 0 ? latest : nil }
}
