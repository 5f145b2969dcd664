/// A time of day: nanoseconds since 1970-01-01T00:00:00Z.
///
/// Differences are plain nanoseconds. Sums and differences wrap at 2⁶³ and never trap.
public struct WallTime: Hashable, Sendable, Comparable {
  /// Since 1970-01-01T00:00:00Z; negative before.
  public var nanoseconds: Int64

  /// A time of day by its nanoseconds since 1970.
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// A time of day by its milliseconds since 1970. Wraps at 2⁶³ nanoseconds.
  public init(milliseconds: Int64) { nanoseconds = milliseconds &* 1_000_000 }

  /// Whole milliseconds since 1970.
  public var milliseconds: Int64 { nanoseconds / 1_000_000 }
  /// Whole seconds since 1970.
  public var seconds: Int64 { nanoseconds / 1_000_000_000 }

  /// 1970-01-01T00:00:00Z.
  public static let zero = WallTime(nanoseconds: 0)
  /// The last time of day that there is, in the year 2262.
  public static let max = WallTime(nanoseconds: .max)

  /// Whether it comes before the other one.
  public static func < (a: WallTime, b: WallTime) -> Bool { a.nanoseconds < b.nanoseconds }
  /// Nanoseconds from the second time to the first.
  public static func &- (a: WallTime, b: WallTime) -> Int64 { a.nanoseconds &- b.nanoseconds }

  /// The time so many nanoseconds later.
  public static func &+ (time: WallTime, nanoseconds: Int64) -> WallTime {
    WallTime(nanoseconds: time.nanoseconds &+ nanoseconds)
  }

  /// The time so many nanoseconds earlier.
  public static func &- (time: WallTime, nanoseconds: Int64) -> WallTime {
    WallTime(nanoseconds: time.nanoseconds &- nanoseconds)
  }
}
