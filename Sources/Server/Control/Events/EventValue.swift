internal import Base

/// A value in the data of an event, in the form of JSON. Members keep their order. Written without an encoder, because events are
/// told under the lock of a stream.
package enum EventValue: Sendable, Hashable {
  case null
  case flag(Bool)
  case whole(Int64)
  case number(Double)
  case text(String)
  /// A text of letters, digits and `+/=` alone. It is not cut off.
  case encoded(String)
  case list([EventValue])
  case object([Member])

  package struct Member: Sendable, Hashable {
    package var name: String
    package var value: EventValue

    package init(name: String, value: EventValue) {
      (self.name, self.value) = (name, value)
    }
  }

  /// The most characters of a text; the rest is cut off.
  static let longestText = 400
  /// The most elements of a list.
  static let longestList = 16

  /// RFC 8259, without white space.
  package var json: String {
    switch self {
    case .null: "null"
    case .flag(let flag): flag ? "true" : "false"
    case .whole(let number): "\(number)"
    case .number(let number): number.isFinite ? "\((number * 1000).rounded() / 1000)" : "null"
    case .text(let text): LogText.json(String(text.prefix(Self.longestText)))
    case .encoded(let text): LogText.json(text)
    case .list(let values): "[\(values.prefix(Self.longestList).map(\.json).joined(separator: ","))]"
    case .object(let members): "{\(members.map { "\(LogText.json($0.name)):\($0.value.json)" }.joined(separator: ","))}"
    }
  }

  /// A text, or null.
  package static func text(orNull text: String?) -> EventValue { text.map(EventValue.text) ?? .null }

  package static func whole(orNull number: Int64?) -> EventValue { number.map(EventValue.whole) ?? .null }

  /// The object with one more member; other values unchanged.
  func with(_ name: String, _ value: EventValue) -> EventValue {
    guard case .object(let members) = self else { return self }
    return .object(members + [Member(name: name, value: value)])
  }
}

extension EventValue: ExpressibleByStringLiteral, ExpressibleByDictionaryLiteral {
  package init(stringLiteral text: String) { self = .text(text) }

  package init(dictionaryLiteral members: (String, EventValue)...) {
    self = .object(members.map { Member(name: $0.0, value: $0.1) })
  }
}
