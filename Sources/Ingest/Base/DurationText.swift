/// Durations as text: `200ms`, `2s`, `1.5s`, `1m`, `2h`, `30d`.
package enum DurationText {
  /// Parses a duration. A number without a unit is refused, because its meaning is ambiguous.
  package static func parse(_ text: String) throws(ValueError) -> Duration {
    guard let (value, unit) = DecimalText.split(text) else {
      throw ValueError("that is not a duration", advice: "write 200ms, 2s, 1m or 1h")
    }
    let nanosecondsPerUnit: Int64
    switch unit {
    case "ms": nanosecondsPerUnit = 1_000_000
    case "s": nanosecondsPerUnit = 1_000_000_000
    case "m", "min": nanosecondsPerUnit = 60_000_000_000
    case "h": nanosecondsPerUnit = 3_600_000_000_000
    case "d": nanosecondsPerUnit = 86_400_000_000_000
    case "": throw ValueError("a duration needs a unit", advice: "write \(text)ms or \(text)s")
    default: throw ValueError("the unit \"\(unit)\" is unknown", advice: "use ms, s, m, h or d")
    }
    guard let nanoseconds = value.times(nanosecondsPerUnit) else {
      throw ValueError("the duration is too long", advice: "write 200ms, 2s, 1m or 1h")
    }
    return .nanoseconds(nanoseconds)
  }

  /// The shortest text that `parse` reads as the same duration, to the millisecond: `200ms`, `2s`, `1m`.
  package static func text(_ duration: Duration) -> String {
    let milliseconds = duration.wholeMilliseconds
    if milliseconds % 3_600_000 == 0, milliseconds != 0 { return "\(milliseconds / 3_600_000)h" }
    if milliseconds % 60_000 == 0, milliseconds != 0 { return "\(milliseconds / 60_000)m" }
    return milliseconds % 1000 == 0 ? "\(milliseconds / 1000)s" : "\(milliseconds)ms"
  }
}

extension Duration {
  /// Milliseconds, rounded towards zero; saturates.
  package var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? (seconds < 0 ? .min : .max) : product &+ attoseconds / 1_000_000_000_000_000
  }
}
