internal import FMP4

/// A publisher's clock as its protocol tells it: a counter of so many bits, which wraps, and so many ticks a second. Each value
/// is taken for the one nearest to the value before it (RTMP 5.3.1.3), so that what comes out does not wrap. One clock serves
/// all tracks of a publication that count by it, so that they wrap together.
struct WireClock: Sendable {
  /// Ticks a second.
  let hertz: UInt32
  private let unusedBits: UInt64
  private var last: (wire: UInt64, ticks: Int64)?

  /// `bits` are the counter's: 1 to 64.
  init(hertz: UInt32, bits: Int) {
    self.hertz = hertz
    unusedBits = UInt64(64 - min(max(bits, 1), 64))
  }

  /// What the counter would be, had it never wrapped; before its first value it may be negative.
  mutating func ticks(_ wire: UInt64) -> Int64 {
    let ticks: Int64
    if let last {
      // The highest bit of the difference is its sign.
      ticks = last.ticks &+ Int64(bitPattern: (wire &- last.wire) << unusedBits) >> Int64(unusedBits)
    } else {
      ticks = Int64(bitPattern: (wire << unusedBits) >> unusedBits)
    }
    last = (wire, ticks)
    return ticks
  }

  /// The same in nanoseconds, to the nearest.
  mutating func nanoseconds(_ wire: UInt64) -> Int64 {
    MediaTime(ticks: ticks(wire), timescale: hertz).nanoseconds
  }
}
