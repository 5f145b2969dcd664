/// A number with up to nine decimals before a unit, held exactly: `1.5` is 1 and 500,000,000 billionths.
package struct DecimalText {
  private let whole: Int64
  private let billionths: Int64

  private static let maximumDecimals = 9

  /// Splits `1.5s` into the number and the unit. Nil when the text does not begin with a number.
  package static func split(_ text: String) -> (value: DecimalText, unit: String)? {
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
    let parts = number.split(separator: ".", omittingEmptySubsequences: false)
    guard let first = parts.first, let whole = Int64(first) else { return nil }
    var billionths: Int64 = 0
    if parts.count > 1 {
      guard parts.count == 2, (1...maximumDecimals).contains(parts[1].count) else { return nil }
      let padded = parts[1] + String(repeating: "0", count: maximumDecimals - parts[1].count)
      guard let value = Int64(padded) else { return nil }
      billionths = value
    }
    return (DecimalText(whole: whole, billionths: billionths), String(text[number.endIndex...]))
  }

  /// The number times the size of a unit, rounded towards zero. Nil when the result exceeds 63 bits.
  package func times(_ unit: Int64) -> Int64? {
    let (product, overflow) = whole.multipliedReportingOverflow(by: unit)
    let fraction = Int64(1_000_000_000).dividingFullWidth(billionths.multipliedFullWidth(by: unit)).quotient
    let (sum, carry) = product.addingReportingOverflow(fraction)
    return overflow || carry ? nil : sum
  }
}
