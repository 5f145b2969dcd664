internal import Publishing
internal import Base

/// The clock of a programme: all of its tracks share the counter of 33 bits, so that they wrap together.
enum ProgramClock {
  /// Ticks per second of PTS and DTS (ISO/IEC 13818-1 §2.4.3.7).
  static let hertz: UInt32 = 90_000
  static let bits = 33

  static var counter: WireClock { WireClock(hertz: hertz, bits: bits) }

  /// A value of the counter without wraps: the one that is nearest to `ticks`.
  static func ticks(_ value: UInt64, near ticks: Int64) -> Int64 {
    let unused = Int64(64 - bits)
    return ticks &+ (((Int64(bitPattern: value) &- ticks) << unused) >> unused)
  }
}
