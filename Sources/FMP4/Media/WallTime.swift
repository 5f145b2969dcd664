/// A time of day: nanoseconds since 1970-01-01T00:00:00Z.
///
/// Differences are plain nanoseconds. Sums and differences wrap at 2⁶³ and never trap.
package struct WallTime: Hashable, Sendable, Comparable {
  package var nanoseconds: Int64

  @inlinable package init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  package init(milliseconds: Int64) { nanoseconds = milliseconds &* 1_000_000 }

  /// Whole milliseconds, and whole seconds, since 1970.
  package var milliseconds: Int64 { nanoseconds / 1_000_000 }
  package var seconds: Int64 { nanoseconds / 1_000_000_000 }

  package static let zero = WallTime(nanoseconds: 0)
  package static let max = WallTime(nanoseconds: .max)

  @inlinable package static func < (a: WallTime, b: WallTime) -> Bool { a.nanoseconds < b.nanoseconds }
  @inlinable package static func &- (a: WallTime, b: WallTime) -> Int64 { a.nanoseconds &- b.nanoseconds }

  @inlinable package static func &+ (time: WallTime, nanoseconds: Int64) -> WallTime {
    WallTime(nanoseconds: time.nanoseconds &+ nanoseconds)
  }

  @inlinable package static func &- (time: WallTime, nanoseconds: Int64) -> WallTime {
    WallTime(nanoseconds: time.nanoseconds &- nanoseconds)
  }
}
