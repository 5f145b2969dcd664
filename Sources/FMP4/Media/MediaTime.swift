/// A point or a duration on a media timeline, in ticks of a timescale.
///
/// Comparison is exact across timescales, because the product of 64 by 32 bits never rounds.
public struct MediaTime: Hashable, Sendable {
  /// Ticks since the timeline's origin; may be negative.
  public var ticks: Int64
  /// Ticks per second; never 0.
  public var timescale: UInt32

  /// A time in ticks of a timescale. A timescale of 0 counts as 1.
  public init(ticks: Int64, timescale: UInt32) {
    self.ticks = ticks
    self.timescale = max(timescale, 1)
  }

  /// A time in milliseconds, which are its ticks.
  public init(milliseconds: Int64) {
    self.init(ticks: milliseconds, timescale: 1000)
  }

  /// A time in nanoseconds, which are its ticks.
  public init(nanoseconds: Int64) {
    self.init(ticks: nanoseconds, timescale: 1_000_000_000)
  }

  /// The timeline's origin, or no duration; in milliseconds.
  public static let zero = MediaTime(ticks: 0, timescale: 1000)

  /// Seconds, for text and for metrics only. Never converted back to media time.
  public var seconds: Double { Double(ticks) / Double(timescale) }

  /// Whole nanoseconds, rounded to the nearest. Saturates beyond ±292 years.
  public var nanoseconds: Int64 { rescaled(to: 1_000_000_000) }

  /// The same time in ticks of another timescale, rounded to the nearest (halves away from zero). Saturates if 64 bits
  /// cannot hold it.
  public func rescaled(to other: UInt32) -> Int64 {
    if other == timescale { return ticks }
    let product = ticks.magnitude.multipliedFullWidth(by: UInt64(other))
    let divisor = UInt64(timescale)
    guard product.high < divisor else { return ticks < 0 ? .min : .max }
    let (quotient, remainder) = divisor.dividingFullWidth(product)
    let rounded = quotient &+ (remainder >= divisor - remainder ? 1 : 0)
    guard rounded <= UInt64(Int64.max) else { return ticks < 0 ? .min : .max }
    return ticks < 0 ? -Int64(rounded) : Int64(rounded)
  }

  /// The same time in another timescale, rounded as `rescaled(to:)` does.
  public func converted(to other: UInt32) -> MediaTime {
    MediaTime(ticks: rescaled(to: other), timescale: other)
  }

  /// The sum, in the timescale of the left side. Wraps at 2⁶³ ticks; never traps.
  public static func + (a: MediaTime, b: MediaTime) -> MediaTime {
    MediaTime(ticks: a.ticks &+ b.rescaled(to: a.timescale), timescale: a.timescale)
  }

  /// The difference, in the timescale of the left side. Wraps at 2⁶³ ticks; never traps.
  public static func - (a: MediaTime, b: MediaTime) -> MediaTime {
    MediaTime(ticks: a.ticks &- b.rescaled(to: a.timescale), timescale: a.timescale)
  }
}

extension MediaTime: Comparable {
  /// Exact for any two timescales.
  public static func < (a: MediaTime, b: MediaTime) -> Bool {
    if a.timescale == b.timescale { return a.ticks < b.ticks }
    let left = a.ticks.multipliedFullWidth(by: Int64(b.timescale))
    let right = b.ticks.multipliedFullWidth(by: Int64(a.timescale))
    return left.high != right.high ? left.high < right.high : left.low < right.low
  }

  /// The same time, in whichever timescales: 1 s is 1000 ms.
  public static func == (a: MediaTime, b: MediaTime) -> Bool {
    !(a < b) && !(b < a)
  }

  /// Equal times of different timescales have the same hash: that of their milliseconds.
  public func hash(into hasher: inout Hasher) {
    hasher.combine(rescaled(to: 1000))
  }
}
