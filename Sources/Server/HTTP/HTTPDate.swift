/// A time in the form of HTTP's Date field (RFC 9110 §5.6.7, IMF-fixdate): always 29 bytes, whole seconds.
struct HTTPDate: Sendable, Equatable {
  /// The length of such a date in bytes.
  static let length = 29

  /// Seconds since 1970-01-01T00:00:00Z.
  let second: Int64
  let text: String

  init(second: Int64) {
    self.second = second
    let days = Self.floorDivide(second, 86_400)
    let ofDay = second &- days &* 86_400
    let date = Self.civil(days: days)
    let weekday = Self.weekdays[Int(Self.floorModulo(days &+ 4, 7))]
    let month = Self.months[Int(date.month &- 1)]
    let time = [ofDay / 3600, ofDay / 60 % 60, ofDay % 60].map { Self.digits($0, 2) }.joined(separator: ":")
    text = "\(weekday), \(Self.digits(date.day, 2)) \(month) \(Self.digits(date.year, 4)) \(time) GMT"
  }

  private static let weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

  private static func digits(_ value: Int64, _ width: Int) -> String {
    let text = String(value)
    return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
  }

  /// The Gregorian date for days since 1970-01-01, with eras of 400 years that begin on 1 March.
  private static func civil(days: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = days &+ 719_468
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted &- era &* 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    let year = yearOfEra &+ era &* 400 &+ (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
  }

  private static func floorDivide(_ value: Int64, _ divisor: Int64) -> Int64 {
    value >= 0 ? value / divisor : -((-value &+ divisor &- 1) / divisor)
  }

  private static func floorModulo(_ value: Int64, _ divisor: Int64) -> Int64 {
    value &- floorDivide(value, divisor) &* divisor
  }
}
