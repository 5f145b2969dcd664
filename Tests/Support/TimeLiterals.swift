package import Base
public import FMP4

// Tests write times as numbers.

extension WallTime: ExpressibleByIntegerLiteral {
  public init(integerLiteral nanoseconds: Int64) { self.init(nanoseconds: nanoseconds) }

  package static func at(_ nanoseconds: Int64) -> WallTime { WallTime(nanoseconds: nanoseconds) }
  package static func + (time: WallTime, nanoseconds: Int64) -> WallTime { time &+ nanoseconds }
  package static func - (time: WallTime, nanoseconds: Int64) -> WallTime { time &- nanoseconds }
}

extension MonotonicTime: ExpressibleByIntegerLiteral {
  package init(integerLiteral nanoseconds: Int64) { self.init(nanoseconds: nanoseconds) }

  package static func at(_ nanoseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: nanoseconds) }
  package static func + (time: MonotonicTime, nanoseconds: Int64) -> MonotonicTime { time &+ nanoseconds }
  package static func - (time: MonotonicTime, nanoseconds: Int64) -> MonotonicTime { time &- nanoseconds }
  package static func += (time: inout MonotonicTime, nanoseconds: Int64) { time = time &+ nanoseconds }
}
