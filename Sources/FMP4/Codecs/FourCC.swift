/// A box type, brand, handler or sample entry: four bytes that are read as text (ISO/IEC 14496-12 §4.2).
public struct FourCC: Hashable, Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
  /// The four bytes, big-endian.
  public let rawValue: UInt32

  /// The code with these four bytes, big-endian.
  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// The code that a literal spells: `"moof"`. Traps if it has not four bytes.
  public init(stringLiteral text: StaticString) {
    precondition(text.utf8CodeUnitCount == 4, "a four-character code has four bytes")
    rawValue = text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
  }

  /// The four bytes as text.
  public var description: String {
    String(decoding: (0..<4).map { UInt8(truncatingIfNeeded: rawValue >> (24 - 8 * $0)) }, as: UTF8.self)
  }
}
