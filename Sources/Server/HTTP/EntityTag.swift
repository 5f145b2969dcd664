package import NIOCore

/// Entity tags (RFC 9110 §8.8.3) and conditions on them.
package enum EntityTag {
  /// A tag made of the bytes.
  package static func of(_ bytes: ByteBuffer) -> String {
    var hash = ContentHash()
    hash.add(bytes)
    return "\"\(hash.text)\""
  }

  /// The tag of the compressed form: a strong tag stands for one sequence of bytes.
  static func compressed(_ tag: String) -> String {
    tag.hasSuffix("\"") ? tag.dropLast() + "-gz\"" : tag
  }

  /// If-None-Match: whether one of the listed tags, or `*`, matches by weak comparison (RFC 9110 §13.1.2).
  package static func list(_ condition: String, contains tag: String) -> Bool {
    condition.utf8.split(separator: UInt8(ascii: ",")).contains { item in
      let candidate = opaque(trimmed(item))
      return candidate.elementsEqual("*".utf8) || candidate.elementsEqual(opaque(tag.utf8[...]))
    }
  }

  /// If-Range: a part may be sent only for the same strong tag. A date never matches (RFC 9110 §13.1.5).
  package static func condition(_ condition: String, isExactly tag: String) -> Bool {
    let candidate = trimmed(condition.utf8[...])
    return candidate.first == UInt8(ascii: "\"") && candidate.elementsEqual(tag.utf8)
  }

  private static func opaque(_ tag: Substring.UTF8View) -> Substring.UTF8View {
    tag.starts(with: "W/".utf8) ? tag.dropFirst(2) : tag
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text.drop { $0 == 0x20 || $0 == 0x09 }
    while text.last == 0x20 || text.last == 0x09 { text = text.dropLast() }
    return text
  }
}
