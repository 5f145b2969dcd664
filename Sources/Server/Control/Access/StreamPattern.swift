package import Base
package import Publishing

/// A stream's name, or a pattern of names, in which each `*` stands for any letters or none.
package struct StreamPattern: Sendable, Hashable, CustomStringConvertible {
  package let description: String

  /// All streams.
  package static let all = StreamPattern(text: "*")

  private init(text: String) { description = text }

  package init(_ name: StreamName) { description = name.description }

  package init(parsing text: String) throws(ValueError) {
    let letters = text.replacing("*", with: "")
    let isPossible = letters.isEmpty ? text == "*" : StreamName(letters) != nil || StreamName("a" + letters) != nil
    guard isPossible, text.first == "*" || StreamName(letters) != nil else {
      throw ValueError(
        "that is neither a stream's name nor a pattern", advice: "write a name, cam-* or \"*\"; \(StreamName.grammar)")
    }
    description = text
  }

  /// The name, when it is no pattern.
  package var name: StreamName? { StreamName(description) }

  package func matches(_ name: StreamName) -> Bool { NamePattern(description).matches(name) }

  /// Whether it is more specific than another: a name before patterns, then by letters other than `*`, then by fewer `*`.
  package func isMoreSpecific(than other: StreamPattern) -> Bool { rank > other.rank }

  private var rank: (Int, Int, Int) {
    let stars = description.utf8.count { $0 == UInt8(ascii: "*") }
    return (stars == 0 ? 1 : 0, description.utf8.count - stars, -stars)
  }
}
