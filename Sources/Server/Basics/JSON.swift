package import NIOCore

/// A JSON value (RFC 8259) to be written; members keep their order.
package enum JSON: Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  /// Not a finite number: written as null, which is what JSON has for it.
  case number(Double)
  case string(String)
  case array([JSON])
  case object([(name: String, value: JSON)])

  package static func integer(_ value: Int) -> JSON { .integer(Int64(value)) }

  /// The text, in UTF-8, without white space.
  package func serialized() -> ByteBuffer {
    var buffer = ByteBuffer()
    write(into: &buffer)
    return buffer
  }

  private func write(into buffer: inout ByteBuffer) {
    switch self {
    case .null: buffer.writeStaticString("null")
    case .bool(let value): buffer.writeString(value ? "true" : "false")
    case .integer(let value): buffer.writeString(String(value))
    case .number(let value): buffer.writeString(value.isFinite ? "\(value)" : "null")
    case .string(let value): Self.write(value, into: &buffer)
    case .array(let values):
      buffer.writeStaticString("[")
      for (index, value) in values.enumerated() {
        if index > 0 { buffer.writeStaticString(",") }
        value.write(into: &buffer)
      }
      buffer.writeStaticString("]")
    case .object(let members):
      buffer.writeStaticString("{")
      for (index, member) in members.enumerated() {
        if index > 0 { buffer.writeStaticString(",") }
        Self.write(member.name, into: &buffer)
        buffer.writeStaticString(":")
        member.value.write(into: &buffer)
      }
      buffer.writeStaticString("}")
    }
  }

  /// A string with its quotes: RFC 8259 §7 escapes the quote, the backslash and everything below U+0020; `<` and the
  /// line separators are escaped too, so that the text may stand inside a page's script.
  private static func write(_ text: String, into buffer: inout ByteBuffer) {
    buffer.writeStaticString("\"")
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": buffer.writeStaticString("\\\"")
      case "\\": buffer.writeStaticString("\\\\")
      case "\n": buffer.writeStaticString("\\n")
      case "\r": buffer.writeStaticString("\\r")
      case "\t": buffer.writeStaticString("\\t")
      case "\0"..<" ", "<", "\u{7F}", "\u{2028}", "\u{2029}":
        let digits = String(scalar.value, radix: 16)
        buffer.writeString("\\u" + String(repeating: "0", count: 4 - digits.utf8.count) + digits)
      default: buffer.writeString(String(scalar))
      }
    }
    buffer.writeStaticString("\"")
  }
}

extension JSON: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral, ExpressibleByNilLiteral
{
  package init(stringLiteral value: String) { self = .string(value) }
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(booleanLiteral value: Bool) { self = .bool(value) }
  package init(arrayLiteral elements: JSON...) { self = .array(elements) }
  package init(dictionaryLiteral elements: (String, JSON)...) {
    self = .object(elements.map { (name: $0.0, value: $0.1) })
  }
  package init(nilLiteral: ()) { self = .null }
}
