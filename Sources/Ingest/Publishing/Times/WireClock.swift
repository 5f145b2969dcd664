internal import FMP4

/// A publisher's clock in its protocol: a counter with a number of bits, which wraps, and a rate. Each value is taken
/// as the one nearest to the value before (RTMP 5.3.1.3), so the output does not wrap. All tracks of a publication that
/// use the counter share one clock, so that they wrap together.
package struct WireClock: Sendable {
  /// Ticks per second.
  let hertz: UInt32
  private let unusedBits: UInt64
  /// Ticks by which a value may differ from the one before if its highest bit does not count; 0 if that always counts.
  private let mostWithoutHighestBit: UInt64
  private var last: (wire: UInt64, ticks: Int64)?

  /// `bits` of the counter: 1 to 64. `mayLackHighestBit`: some publishers wrap at half the range. Their first value behind that is
  /// no step back by half the range, which nothing else makes to within a minute.
  package init(hertz: UInt32, bits: Int, mayLackHighestBit: Bool = false) {
    self.hertz = hertz
    unusedBits = UInt64(64 - min(max(bits, 1), 64))
    mostWithoutHighestBit = mayLackHighestBit ? UInt64(hertz) &* 60 : 0
  }

  /// The counter's value without wraps. It may be negative for values before the first.
  package mutating func ticks(_ wire: UInt64) -> Int64 {
    let ticks: Int64
    if let last {
      let short = difference(wire, last.wire, ignoring: unusedBits &+ 1)
      let isShort = short.magnitude < mostWithoutHighestBit
      ticks = last.ticks &+ (isShort ? short : difference(wire, last.wire, ignoring: unusedBits))
    } else {
      ticks = Int64(bitPattern: (wire << unusedBits) >> unusedBits)
    }
    last = (wire, ticks)
    return ticks
  }

  /// The highest bit of the difference is its sign.
  private func difference(_ wire: UInt64, _ last: UInt64, ignoring bits: UInt64) -> Int64 {
    Int64(bitPattern: (wire &- last) << bits) >> Int64(bits)
  }

  /// The same in nanoseconds, rounded to the nearest.
  package mutating func nanoseconds(_ wire: UInt64) -> Int64 {
    MediaTime(ticks: ticks(wire), timescale: hertz).nanoseconds
  }
}
