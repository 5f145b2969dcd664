package import Base
package import FMP4
internal import FoundationEssentials
package import HTTP
package import NIOCore
internal import Storage

/// Encodes responses as JSON (RFC 8259): UTF-8, no white space, members in alphabetical order.
package enum JSONText {
  package static func encode(_ answer: some Encodable) -> ByteBuffer {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Encoding fails only for infinite numbers, and no response has any.
    return ByteBuffer(bytes: (try? encoder.encode(answer)) ?? Data("null".utf8))
  }

  /// Nil if the text is no such value.
  package static func decode<Value: Decodable>(_ type: Value.Type, _ text: ByteBuffer) -> Value? {
    try? JSONDecoder().decode(type, from: Data(text.readableBytesView))
  }

  /// An object whose members keep their order.
  static func encode(inOrder members: [(name: String, value: any Encodable)]) -> ByteBuffer {
    var text = ByteBuffer()
    for (index, member) in members.enumerated() {
      text.writeString("\(index == 0 ? "{" : ",")\(LogText.json(member.name)):")
      text.writeImmutableBuffer(encode(member.value))
    }
    text.writeString("}")
    return text
  }

  /// Reads the body of a request.
  package static func decode<Value: Decodable>(_ type: Value.Type, from body: ByteBuffer) throws(ValueError) -> Value {
    do {
      return try JSONDecoder().decode(type, from: Data(body.readableBytesView))
    } catch let error as DecodingError {
      throw ValueError("the body is not the JSON that is wanted: \(describe(error))", advice: "see docs/http.md")
    } catch {
      throw ValueError("the body is not JSON", advice: "see docs/http.md")
    }
  }

  private static func describe(_ error: DecodingError) -> String {
    func place(_ context: DecodingError.Context) -> String {
      context.codingPath.map(\.stringValue).joined(separator: ".")
    }
    return switch error {
    case .keyNotFound(let key, _): "\(key.stringValue) is missing"
    case .typeMismatch(_, let context), .valueNotFound(_, let context): "\(place(context)) has another type"
    default: "it is not JSON"
    }
  }

  /// `2026-11-21T12:03:04.567Z`.
  package static func time(_ time: WallTime) -> String { UTCText(time).internet }
}

extension HTTPResponse {
  /// A response of the API.
  package static func json(_ answer: some Encodable) -> HTTPResponse { json(text: JSONText.encode(answer)) }

  package static func json(text: ByteBuffer, cache: CachePolicy = .never) -> HTTPResponse {
    HTTPResponse(
      headers: [
        HeaderField("Content-Type", ContentType.json.rawValue), HeaderField("Cache-Control", cache.value),
      ],
      compression: .gzip, body: .pieces([.bytes(text)]))
  }
}

/// Unknown values are encoded as null, so every member is always present. This holds for types in files that see this
/// extension, so what encodes answers elsewhere imports this module.
extension KeyedEncodingContainer {
  package mutating func encodeIfPresent(_ value: String?, forKey key: Key) throws { try encode(value, forKey: key) }
  package mutating func encodeIfPresent(_ value: Double?, forKey key: Key) throws { try encode(value, forKey: key) }
  package mutating func encodeIfPresent(_ value: Int64?, forKey key: Key) throws { try encode(value, forKey: key) }
  package mutating func encodeIfPresent(_ value: Int?, forKey key: Key) throws { try encode(value, forKey: key) }
  package mutating func encodeIfPresent<T: Encodable>(_ value: T?, forKey key: Key) throws {
    try encode(value, forKey: key)
  }
}
