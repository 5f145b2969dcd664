/// A box type, brand, handler or sample entry: four bytes that are read as text (ISO/IEC 14496-12 §4.2).
package struct FourCC: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  package let rawValue: UInt32

  package init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  package init(stringLiteral text: StaticString) {
    precondition(text.utf8CodeUnitCount == 4, "a four-character code has four bytes")
    rawValue = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  package var description: String {
    String(decoding: (0..<4).map { UInt8(truncatingIfNeeded: rawValue >> (24 - 8 * $0)) }, as: UTF8.self)
  }
}
