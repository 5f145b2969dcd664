internal import Glibc

/// A wall-clock time as text, in UTC.
struct UTCText {
  /// `12:03:04`
  let clock: String
  /// `2026-11-21T12:03:04.567Z` (RFC 3339).
  let internet: String
  /// `20261121T120304Z`, which names recordings.
  let compact: String

  init(nanosecondsSince1970 nanoseconds: Int64) {
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

  /// Nanoseconds since 1970 of `2026-11-21T12:03:04Z`, with up to nine decimals of a second; nil for anything else.
  static func parse(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.count <= 30, bytes.last == UInt8(ascii: "Z") else { return nil }
    for (index, mark) in [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":")] as [(Int, Unicode.Scalar)] {
      guard bytes[index] == UInt8(ascii: mark) else { return nil }
    }
    func number(_ range: Range<Int>) -> Int32? {
      guard bytes[range].allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
      return Int32(String(decoding: bytes[range], as: UTF8.self))
    }
    guard let year = number(0..<4), let month = number(5..<7), let day = number(8..<10), let hour = number(11..<13),
      let minute = number(14..<16), let second = number(17..<19), (1...12).contains(month), (1...31).contains(day),
      hour < 24, minute < 60, second < 61
    else { return nil }
    var fraction: Int32 = 0
    if bytes.count > 20 {
      let decimals = bytes.count - 21
      guard bytes[19] == UInt8(ascii: "."), decimals > 0, let value = number(20..<20 + decimals) else { return nil }
      fraction = (decimals..<9).reduce(value) { value, _ in value &* 10 }
    }
    var time = tm()
    (time.tm_year, time.tm_mon, time.tm_mday) = (year - 1900, month - 1, day)
    (time.tm_hour, time.tm_min, time.tm_sec) = (hour, minute, second)
    return Int64(timegm(&time)) &* 1_000_000_000 &+ Int64(fraction)
  }

  private static func digits(_ number: Int32, _ count: Int) -> String {
    let text = String(number)
    return String(repeating: "0", count: max(0, count - text.count)) + text
  }
}
