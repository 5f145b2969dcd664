internal import Base
internal import FMP4

/// One RTP clock for the encodings of a picture. A frame has the same time in each, but each sender counts from a random value
/// (RFC 3550 §5.1). The clock is that of the first encoding that comes.
///
/// Sender reports say to about a millisecond how far apart the counts are. Frames lie further apart than that, so the pair of
/// frames that fits says it to the tick: key frames of one picture then have one time.
struct LayerClocks {
  private struct Layer {
    /// Its count minus the common one; nil until that is known.
    var difference: UInt32?
    var report: (wall: Int64, timestamp: UInt32)?
    /// The newest timestamps, oldest first.
    var frames: [UInt32] = []
    /// When it was last looked for among the others.
    var tried: MonotonicTime?
  }

  /// Ticks per second.
  private static let hertz: UInt32 = 90_000
  /// Timestamps that are kept of an encoding.
  private static let kept = 64
  /// How far a pair of frames may be off what reports say, in ticks: 5 ms.
  private static let tolerance: UInt32 = 450
  /// Nanoseconds between two looks at all pairs.
  private static let pause: Int64 = 100_000_000
  /// As many equal timestamps show that two encodings count alike.
  private static let equals = 5

  private var layers: [TrackID: Layer] = [:]

  /// No encoding is on the clock.
  var isEmpty: Bool { !layers.values.contains { $0.difference != nil } }

  func isKnown(_ id: TrackID) -> Bool { layers[id]?.difference != nil }

  /// An encoding's timestamp on the common clock; nil until its count is known.
  func common(_ id: TrackID, _ timestamp: UInt32) -> UInt32? { layers[id]?.difference.map { timestamp &- $0 } }

  /// Another sender has another count.
  mutating func forget(_ id: TrackID) { layers[id] = nil }

  /// Puts an encoding on the clock while none of the others has frames. Reports alone place it; without them the clock begins
  /// anew with it. Returns whether the clock began anew.
  mutating func begin(_ id: TrackID) -> Bool {
    for other in layers.keys.sorted() {
      guard let expected = expected(id, beside: other), let known = layers[other]?.difference else { continue }
      layers[id]?.difference = expected &+ known
      return false
    }
    for other in layers.keys { layers[other]?.difference = other == id ? 0 : nil }
    return true
  }

  /// How much farther the count of one is than that of another, by their reports.
  private func expected(_ id: TrackID, beside other: TrackID) -> UInt32? {
    guard id != other, let own = layers[id]?.report, let its = layers[other]?.report else { return nil }
    let apart = MediaTime(nanoseconds: own.wall &- its.wall).rescaled(to: Self.hertz)
    return own.timestamp &- its.timestamp &- UInt32(truncatingIfNeeded: apart)
  }

  /// Takes the timestamp of a frame.
  mutating func saw(_ id: TrackID, _ timestamp: UInt32, _ now: MonotonicTime) {
    if isEmpty { layers[id, default: Layer()].difference = 0 }
    var layer = layers[id] ?? Layer()
    layer.frames.append(timestamp)
    if layer.frames.count > Self.kept { layer.frames.removeFirst() }
    layers[id] = layer
    if layer.difference == nil { place(id, now) }
  }

  /// Takes a report: at `wall` (nanoseconds) the sender's count was `timestamp`.
  mutating func report(_ id: TrackID, wall: Int64, timestamp: UInt32, _ now: MonotonicTime) {
    layers[id, default: Layer()].report = (wall, timestamp)
    for other in layers.keys.sorted() where layers[other]?.difference == nil { place(other, now) }
  }

  /// Looks for the pair of frames, this one's and that of an encoding on the clock, which are of one time.
  private mutating func place(_ id: TrackID, _ now: MonotonicTime) {
    guard let layer = layers[id], layer.difference == nil, !layer.frames.isEmpty,
      layer.tried.map({ now &- $0 >= Self.pause }) ?? true
    else { return }
    layers[id]?.tried = now
    var best: (difference: UInt32, error: UInt32)?
    for (name, other) in layers {
      guard let known = other.difference else { continue }
      if Set(layer.frames).intersection(other.frames).count >= Self.equals {
        layers[id]?.difference = known
        return
      }
      guard let expected = expected(id, beside: name) else { continue }
      for frame in layer.frames {
        for its in other.frames {
          let difference = frame &- its
          let error = Int32(bitPattern: difference &- expected).magnitude
          if error <= Self.tolerance, error < best?.error ?? .max { best = (difference &+ known, error) }
        }
      }
    }
    if let best { layers[id]?.difference = best.difference }
  }
}
