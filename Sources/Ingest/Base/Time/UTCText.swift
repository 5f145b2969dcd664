package import FMP4
internal import Glibc

/// A wall-clock time as text, in UTC: the one writer of RFC 3339.
package struct UTCText {
  /// `12:03:04`
  package let clock: String
  /// `2026-11-21`
  package let date: String
  /// Of the second: `567`.
  package let milliseconds: String
  /// `2026-11-21T12:03:04.567Z` (RFC 3339).
  package let internet: String
  /// `20261121T120304Z`, as in names of recordings.
  package let compact: String

  package init(_ time: WallTime) {
    var seconds = time_t(time.seconds)
    var parts = tm()
    gmtime_r(&seconds, &parts)
    clock = "\(Self.digits(parts.tm_hour, 2)):\(Self.digits(parts.tm_min, 2)):\(Self.digits(parts.tm_sec, 2))"
    date =
      "\(Self.digits(parts.tm_year + 1900, 4))-\(Self.digits(parts.tm_mon + 1, 2))-\(Self.digits(parts.tm_mday, 2))"
    milliseconds = Self.digits(Int32(truncatingIfNeeded: time.milliseconds % 1000), 3)
    compact = "\(date)T\(clock)Z".filter { $0 != "-" && $0 != ":" }
    internet = "\(date)T\(clock).\(milliseconds)Z"
  }

  package init(secondsSince1970 seconds: Int64) { self.init(WallTime(nanoseconds: seconds &* 1_000_000_000)) }

  private static func digits(_ number: Int32, _ count: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
}
