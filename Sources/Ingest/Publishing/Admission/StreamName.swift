/// The name of a stream: one path segment of `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`. Other text never reaches a path, URL or
/// log line unescaped.
package struct StreamName: Hashable, Sendable, CustomStringConvertible, Comparable {
  package let description: String

  /// The rule for names, for error messages.
  package static let grammar =
    "[A-Za-z0-9][A-Za-z0-9._-]{0,63} (1 to 64 letters, digits, dots, underscores, hyphens; first a letter or digit)"
  package static let maximumLength = 64

  /// Nil if the text breaks the rule.
  package init?(_ text: some StringProtocol) {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= Self.maximumLength, Self.isAlphanumeric(first),
      bytes.allSatisfy({
        Self.isAlphanumeric($0) || $0 == UInt8(ascii: ".") || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-")
      })
    else { return nil }
    description = String(text)
  }

  private static func isAlphanumeric(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: false
    }
  }

  package static func < (a: StreamName, b: StreamName) -> Bool { a.description < b.description }
}
