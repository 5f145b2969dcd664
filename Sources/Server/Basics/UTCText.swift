internal import Glibc

/// A wall-clock time as text, in UTC.
package struct UTCText {
  /// `12:03:04`
  package let clock: String
  /// `2026-11-21T12:03:04.567Z` (RFC 3339).
  package let internet: String
  /// `20261121T120304Z`, as in names of recordings.
  package let compact: String

  package init(nanosecondsSince1970 nanoseconds: Int64) {
    var seconds = time_t(nanoseconds / 1_000_000_000)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    clock = "\(Self.digits(parts.tm_hour, 2)):\(Self.digits(parts.tm_min, 2)):\(Self.digits(parts.tm_sec, 2))"
    let date =
      "\(Self.digits(parts.tm_year + 1900, 4))-\(Self.digits(parts.tm_mon + 1, 2))-\(Self.digits(parts.tm_mday, 2))"
    let milliseconds = Self.digits(Int32(truncatingIfNeeded: nanoseconds / 1_000_000 % 1000), 3)
    compact = "\(date)T\(clock)Z".filter { $0 != "-" && $0 != ":" }
    internet = "\(date)T\(clock).\(milliseconds)Z"
  }

  private static func digits(_ number: Int32, _ count: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
}
