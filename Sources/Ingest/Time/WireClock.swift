internal import FMP4

/// A publisher's clock in its protocol: a counter with a number of bits, which wraps, and a rate. Each value is taken
/// as the one nearest to the value before (RTMP 5.3.1.3), so the output does not wrap. All tracks of a publication that
/// use the counter share one clock, so that they wrap together.
struct WireClock: Sendable {
  /// Ticks per second.
  let hertz: UInt32
  private let unusedBits: UInt64
  private var last: (wire: UInt64, ticks: Int64)?

  /// `bits` of the counter: 1 to 64.
  init(hertz: UInt32, bits: Int) {
    self.hertz = hertz
    unusedBits = UInt64(64 - min(max(bits, 1), 64))
  }

  /// The counter's value without wraps. It may be negative for values before the first.
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

  /// The same in nanoseconds, rounded to the nearest.
  mutating func nanoseconds(_ wire: UInt64) -> Int64 {
    MediaTime(ticks: ticks(wire), timescale: hertz).nanoseconds
  }
}
