/// Decimal numbers as text, made from integers and rounded to the nearest. Exact, and the same on every machine.
package enum Decimals {
  /// Seconds with exactly `digits` decimals (0 to 9).
  package static func fixed(_ time: MediaTime, digits: Int) -> String {
    let powers: [UInt32] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000]
    let digits = min(max(digits, 0), 9)
    return scaled(time.rescaled(to: powers[digits]), digits: digits)
  }

  /// Seconds with exactly `digits` decimals (0 to 9), for values from files. NaN becomes 0; other values are limited to
  /// ±10⁹ s.
  package static func fixed(seconds: Double, digits: Int) -> String {
    let most = 1e9
    let bounded = seconds.isNaN ? 0 : min(max(seconds, -most), most)
    return fixed(MediaTime(ticks: Int64((bounded * 1e9).rounded()), timescale: 1_000_000_000), digits: digits)
  }

  /// A number given in thousandths, without trailing zeros: 29970 is "29.97".
  package static func trimmed(thousandths: Int) -> String {
    var text = scaled(Int64(thousandths), digits: 3)
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
  }

  /// A number given in units of 10^-digits.
  package static func scaled(_ value: Int64, digits: Int) -> String {
    var text = String(value.magnitude)
    if digits > 0 {
      if text.utf8.count <= digits { text = String(repeating: "0", count: digits + 1 - text.utf8.count) + text }
      text.insert(".", at: text.index(text.endIndex, offsetBy: -digits))
    }
    return value < 0 ? "-" + text : text
  }
}
