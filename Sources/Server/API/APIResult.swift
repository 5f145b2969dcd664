internal import Answers
internal import Base
internal import HTTP

/// The body of a successful response.
enum APIResult: Sendable {
  case json(any APIObject.Type)
  /// The same, or without an end as `text/event-stream`, as the client prefers.
  case jsonOrEvents(any APIObject.Type)
  /// The state that an action leads to (`APIAction`): 200, or 202 while it is not reached.
  case state(any APIObject.Type)
  /// A JSON object that is not made of members: a document of its own standard.
  case document
  case bytes(ContentType)
  /// 204.
  case nothing
}

/// The body of a request.
enum APIBody: Sendable {
  case json(any APIObject.Type)
  /// Plain text; what it is, with an example.
  case text(String, example: String)
  /// An entry of the configuration file, as JSON or YAML; what it is, with an example.
  case entry(String, example: String)
}

/// An item of the query, or a field of the request.
struct APIParameter: Sendable {
  enum Value: Sendable {
    case text
    /// A time as RFC 3339 writes it.
    case time
    case wholeNumber(ClosedRange<Int>)
    case words([String])
  }

  enum Place: String, Sendable {
    case query, header
  }

  let name: String
  let value: Value
  let place: Place
  let meaning: String

  init(_ name: String, _ value: Value, in place: Place = .query, _ meaning: String) {
    (self.name, self.value, self.place, self.meaning) = (name, value, place, meaning)
  }

  var schema: JSONTree {
    switch value {
    case .text: .object([("type", .text("string"))])
    case .time: .object([("type", .text("string")), ("format", .text("date-time"))])
    case .wholeNumber(let range):
      .object([
        ("type", .text("integer")), ("minimum", .word("\(range.lowerBound)")),
        ("maximum", .word("\(range.upperBound)")),
      ])
    case .words(let words): .object([("type", .text("string")), ("enum", .list(words.map(JSONTree.text)))])
    }
  }
}

/// A place of an address, as `{stream}`.
struct APIPlace: Sendable {
  let name: String
  let meaning: String
  /// A regular expression (ECMA-262) that the values match; the route says more.
  let pattern: String

  static let all = [
    APIPlace(name: "stream", meaning: "The name of a stream.", pattern: namePattern),
    APIPlace(name: "source", meaning: "The name of one of the server's own sources.", pattern: namePattern),
    APIPlace(
      name: "file", meaning: "The name of a recording's file.", pattern: #"^[A-Za-z0-9][A-Za-z0-9._-]*\.mp4$"#),
    APIPlace(name: "key", meaning: "The name of a key.", pattern: namePattern),
    APIPlace(name: "session", meaning: "The id of a session.", pattern: "^[a-z0-9-]+$"),
  ]

  private static let namePattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"
}
