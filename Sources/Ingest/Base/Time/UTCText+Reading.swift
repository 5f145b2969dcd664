package import FMP4
internal import Glibc

extension UTCText {
  /// The time of `2026-11-21T07:24:10Z` (RFC 3339, with an optional fraction or offset), or of the form in names
  /// of recordings: `20261121T072410Z`. Times outside of the years 1677 to 2262 saturate. Nil for any other text.
  package static func read(_ text: String) -> WallTime? {
    var reader = Reader(bytes: Array(text.utf8)[...])
    guard text.utf8.count <= 40, let year = reader.number(4) else { return nil }
    let isCompact = !reader.take("-")
    guard let month = reader.number(2), isCompact || reader.take("-"), let day = reader.number(2),
      reader.take("T") || reader.take("t"), let hour = reader.number(2), isCompact || reader.take(":"),
      let minute = reader.number(2), isCompact || reader.take(":"), let second = reader.number(2)
    else { return nil }
    guard (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61 else { return nil }
    let fraction = reader.take(".") ? reader.fraction() : 0
    guard let fraction, let offset = reader.offset(), reader.bytes.isEmpty else { return nil }
    var parts = tm()
    (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(year - 1900), Int32(month - 1), Int32(day))
    (parts.tm_hour, parts.tm_min, parts.tm_sec) = (Int32(hour), Int32(minute), Int32(second))
    let stated = parts
    let seconds = Int64(timegm(&parts)) &- Int64(offset) &* 60
    // `timegm` moves a day that the month does not have into the next month.
    guard parts.tm_mday == stated.tm_mday || second == 60 else { return nil }
    let (whole, isFar) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    let (time, isFarther) = whole.addingReportingOverflow(fraction)
    return WallTime(nanoseconds: isFar || isFarther ? (seconds < 0 ? .min : .max) : time)
  }

  private struct Reader {
    var bytes: ArraySlice<UInt8>

    mutating func take(_ letter: Unicode.Scalar) -> Bool {
      guard bytes.first == UInt8(ascii: letter) else { return false }
      bytes.removeFirst()
      return true
    }

    private mutating func digit() -> Int? {
      guard let byte = bytes.first, (0x30...0x39).contains(byte) else { return nil }
      bytes.removeFirst()
      return Int(byte) - 0x30
    }

    mutating func number(_ digits: Int) -> Int? {
      var value = 0
      for _ in 0..<digits {
        guard let digit = digit() else { return nil }
        value = value * 10 + digit
      }
      return value
    }

    /// The fraction in nanoseconds; further digits are dropped.
    mutating func fraction() -> Int64? {
      var unit: Int64 = 100_000_000
      guard let first = digit() else { return nil }
      var value = Int64(first) * unit
      while let digit = digit() {
        unit /= 10
        value += Int64(digit) * unit
      }
      return value
    }

    /// The offset in minutes east of Greenwich.
    mutating func offset() -> Int? {
      if take("Z") || take("z") { return 0 }
      // A plus sign that was not escaped in a query arrives as a space.
      let sign = take("+") || take(" ") ? 1 : take("-") ? -1 : 0
      guard sign != 0, let hours = number(2), take(":"), let minutes = number(2), hours < 24, minutes < 60 else {
        return nil
      }
      return sign * (hours * 60 + minutes)
    }
  }
}
