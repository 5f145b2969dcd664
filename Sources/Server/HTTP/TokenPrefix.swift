package import NIOCore

/// The first segment of a path when it is a token: `/~TOKEN/live/cam/index.m3u8`. It is taken off before anything else sees the
/// address, so that all tokens share what is kept for the rest of it.
package enum TokenPrefix {
  /// The longest token in a path, in bytes. Longer ones are sent in a field.
  package static let bytes = 1024

  /// The token and the target without it; nil for a target without a token. The token is not checked.
  package static func split(_ target: ByteBuffer) -> (token: ByteBuffer, rest: ByteBuffer)? {
    let text = target.readableBytesUInt8Span
    let path = startOfPath(text)
    let marker = Self.marker(text, at: path)
    guard marker > 0 else { return nil }
    let start = path + 1 + marker
    var end = start
    while end < text.count, text[end] != UInt8(ascii: "/"), text[end] != UInt8(ascii: "?") { end += 1 }
    guard let token = target.getSlice(at: target.readerIndex + start, length: end - start),
      let rest = target.getSlice(at: target.readerIndex + end, length: text.count - end)
    else { return nil }
    return (token, rest)
  }

  /// The text of a token as it stands in a path, when all of it may stand there as it is (RFC 3986 §2.3).
  package static func text(_ token: ByteBuffer) -> String? {
    let bytes = token.readableBytesUInt8Span
    guard (1...Self.bytes).contains(bytes.count), bytes.indices.allSatisfy({ isUnreserved(bytes[$0]) }) else {
      return nil
    }
    return String(buffer: token)
  }

  /// 0, or the index behind `scheme://authority` (RFC 9112 §3.2.2).
  static func startOfPath(_ text: Span<UInt8>) -> Int {
    guard text.count > 0, text[0] != UInt8(ascii: "/") else { return 0 }
    var slashes = 0
    for index in text.indices where text[index] == UInt8(ascii: "/") {
      slashes += 1
      if slashes == 3 { return index }
    }
    return text.count
  }

  /// The length of the mark between the slash and the token; 0 without one. Some clients escape it.
  private static func marker(_ text: Span<UInt8>, at path: Int) -> Int {
    guard path + 1 < text.count, text[path] == UInt8(ascii: "/") else { return 0 }
    if text[path + 1] == UInt8(ascii: "~") { return 1 }
    guard path + 3 < text.count, text[path + 1] == UInt8(ascii: "%"), text[path + 2] == UInt8(ascii: "7") else {
      return 0
    }
    return text[path + 3] | 0x20 == UInt8(ascii: "e") ? 3 : 0
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"): true
    default: false
    }
  }
}
