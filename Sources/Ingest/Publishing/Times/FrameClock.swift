package import FMP4

/// A constant frame rate on a timescale: the time of each frame in ticks, without accumulated rounding.
package struct FrameClock: Sendable, Hashable {
  let rate: FrameRate
  /// Ticks per second.
  let timescale: UInt32

  /// Ticks of `numerator` frames. The exact frame duration is `wholeTicks / rate.numerator`.
  private var wholeTicks: Int64 { Int64(timescale) &* Int64(rate.denominator) }

  package init(rate: FrameRate, timescale: UInt32) {
    self.rate = rate
    self.timescale = timescale
  }

  /// Ticks from frame 0 to frame `index`, rounded to the nearest.
  func ticks(ofFrame index: Int64) -> Int64 {
    Self.nearest(index &* wholeTicks, Int64(rate.numerator))
  }

  /// The frame nearest to `ticks` after frame 0.
  func frame(nearest ticks: Int64) -> Int64 {
    Self.nearest(ticks &* Int64(rate.numerator), wholeTicks)
  }

  /// Ticks between two frames, if that is a whole number.
  package var wholeStep: UInt32? {
    let (step, rest) = wholeTicks.quotientAndRemainder(dividingBy: Int64(rate.numerator))
    return rest == 0 ? UInt32(exactly: step) : nil
  }

  /// The ticks of a timescale that so many nanoseconds are, rounded up.
  static func ticks(_ nanoseconds: Int64, _ timescale: UInt32) -> Int64 {
    (nanoseconds &* Int64(timescale) &+ 999_999_999) / 1_000_000_000
  }

  /// The quotient rounded to the nearest, halves up. `divisor` is positive.
  private static func nearest(_ value: Int64, _ divisor: Int64) -> Int64 {
    let (quotient, remainder) = value.quotientAndRemainder(dividingBy: divisor)
    if remainder >= 0 { return remainder >= divisor - remainder ? quotient + 1 : quotient }
    return -remainder > divisor + remainder ? quotient - 1 : quotient
  }

  // MARK: common rates

  /// Timescale of a stream with unknown frame rate. A multiple of 1000, so that milliseconds are exact.
  package static let defaultTimescale: UInt32 = 90_000

  /// Frame rates of cameras, encoders and films, slowest first.
  static let commonRates: [FrameRate] = [
    (5, 1), (6, 1), (8, 1), (10, 1), (12, 1), (25, 2), (15_000, 1001), (15, 1), (20, 1), (24_000, 1001), (24, 1),
    (25, 1), (30_000, 1001), (30, 1), (48, 1), (50, 1), (60_000, 1001), (60, 1), (72, 1), (90, 1), (100, 1),
    (120_000, 1001), (120, 1), (144, 1), (240, 1),
  ].compactMap { FrameRate(numerator: $0.0, denominator: $0.1) }

  /// The common rate closest to a stated one (29.97 is 30000/1001). Otherwise the stated one, if it is plausible as a
  /// frame rate and not a mere clock rate; else nil.
  package static func recognise(_ rate: FrameRate?) -> FrameRate? {
    guard let rate else { return nil }
    if let common = recognise(framesPerSecond: rate.framesPerSecond) { return common }
    let plausible = 1.0...300.0
    return rate.numerator < 1000 && plausible.contains(rate.framesPerSecond) ? rate : nil
  }

  /// The common rate of a decimal number. Nil if there is none within 0.02 %.
  package static func recognise(framesPerSecond: Double) -> FrameRate? {
    commonRates.first { abs($0.framesPerSecond - framesPerSecond) <= $0.framesPerSecond * 2e-4 }
  }

  /// The rate's numerator, times 1000 if needed to make it a multiple of 1000 (30 → 30000). Where the wire counts in finer ticks
  /// (`wire` a second, a multiple of 1000), it is the smallest multiple of both: frames that do not keep to the rate have their
  /// times to the tick as well.
  static func timescale(for rate: FrameRate?, wire: UInt32 = 1000) -> UInt32 {
    guard let rate else { return defaultTimescale }
    let own =
      rate.numerator % 1000 == 0
      ? rate.numerator : rate.numerator < 1000 ? rate.numerator * 1000 : defaultTimescale
    guard wire > 1000 else { return own }
    var (divisor, rest) = (rate.numerator, wire)
    while rest > 0 { (divisor, rest) = (rest, divisor % rest) }
    let (both, overflows) = (rate.numerator / divisor).multipliedReportingOverflow(by: wire)
    return overflows || both > finestTimescale ? own : both
  }

  /// Rates are no reason for finer ticks than this, in a second.
  private static let finestTimescale: UInt32 = 1_000_000
}
