internal import Base

/// What a member of an answer means, for the API's description.
package struct FieldNote: Sendable, ExpressibleByStringLiteral {
  let text: String
  /// JSON Schema keywords beside the type.
  private(set) var keywords: [(String, JSONTree)] = []

  package init(stringLiteral text: String) { self.text = text }

  private init(_ text: String, _ keywords: [(String, JSONTree)]) { (self.text, self.keywords) = (text, keywords) }

  /// A text that is one of these words.
  package static func words(_ words: [String], _ text: String) -> FieldNote {
    FieldNote(text, [("enum", .list(words.map(JSONTree.text)))])
  }

  /// A time as RFC 3339 writes it, in UTC.
  package static func time(_ text: String) -> FieldNote { FieldNote(text, [("format", .text("date-time"))]) }
}

/// An answer of the API, or a body that it takes, as a JSON object. It is `Codable` so that its JSON Schema can be made from its
/// members (`SchemaBook`). The server only encodes it, and the commands decode it.
package protocol APIObject: Codable, Sendable {
  /// By member; those without a note are described by their names.
  static var notes: [String: FieldNote] { get }
}

extension APIObject {
  package static var notes: [String: FieldNote] { [:] }
}
