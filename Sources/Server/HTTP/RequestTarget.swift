/// The parsed target of a request line (RFC 9112 §3.2): origin form (`/live/cam/index.m3u8?a=b`), absolute form
/// (`http://host/path`) and the asterisk of OPTIONS. Hostile paths are refused here, so that routes and file names need no
/// further checks.
package struct RequestTarget: Sendable, Equatable {
  /// Why a target is refused.
  package enum Refusal: Error, Equatable {
    /// Longer than `HTTPLimits.targetBytes`: 414.
    case tooLong(Int)
    /// Not a path, an invalid percent escape, or not UTF-8: 400.
    case malformed
    /// A NUL, a control character, a backslash, an encoded slash, or a `.` or `..` segment: 400.
    case hostile
    /// `//`: no such resource: 404.
    case emptySegment
  }

  /// Percent-decoded segments; empty for `/`.
  package let segments: [String]
  /// The text after the `?`, undecoded; empty without a query.
  package let rawQuery: String
  /// `/recordings/`: the segments equal those of `/recordings`; the route decides whether that is the same address.
  package let endsWithSlash: Bool

  /// The decoded path without the query, for messages and logs. Keys are in queries, so they do not get there.
  package var path: String { "/" + segments.joined(separator: "/") }

  init(segments: [String], rawQuery: String = "", endsWithSlash: Bool = false) {
    self.segments = segments
    self.rawQuery = rawQuery
    self.endsWithSlash = endsWithSlash
  }

  package init(parsing target: String, maximumBytes: Int = 4096) throws(Refusal) {
    try self.init(parsing: target.utf8Span.span, maximumBytes: maximumBytes)
  }

  init(parsing bytes: Span<UInt8>, maximumBytes: Int = 4096) throws(Refusal) {
    guard bytes.count <= maximumBytes else { throw .tooLong(bytes.count) }
    var start = 0
    if bytes.isEmpty || bytes[0] != UInt8(ascii: "/") { start = try Self.endOfAuthority(bytes) }
    let end = Self.index(of: UInt8(ascii: "?"), in: bytes, from: start)
    // A correct client sends no fragment; text after "#" is not part of the query.
    rawQuery =
      end < bytes.count
      ? Self.text(bytes.extracting(end + 1..<Self.index(of: UInt8(ascii: "#"), in: bytes, from: end + 1))) : ""
    endsWithSlash = end - start > 1 && bytes[end - 1] == UInt8(ascii: "/")
    segments = try Self.segments(of: bytes.extracting(start..<(endsWithSlash ? end - 1 : end)))
    if endsWithSlash, segments.isEmpty { throw .emptySegment }
  }

  /// The start of the path after `scheme://authority` (RFC 9112 §3.2.2).
  private static func endOfAuthority(_ bytes: Span<UInt8>) throws(Refusal) -> Int {
    for scheme in ["http://", "https://"] {
      let expected = scheme.utf8Span.span
      guard bytes.count >= expected.count,
        expected.indices.allSatisfy({ bytes[$0] == expected[$0] || bytes[$0] | 0x20 == expected[$0] })
      else { continue }
      let end = min(
        index(of: UInt8(ascii: "/"), in: bytes, from: expected.count),
        index(of: UInt8(ascii: "?"), in: bytes, from: expected.count))
      guard end > expected.count, (expected.count..<end).allSatisfy({ isOfHost(bytes[$0]) }) else { throw .malformed }
      return end
    }
    throw .malformed
  }

  /// Where the host stands in a valid target of absolute form; nil in others.
  static func host(in bytes: Span<UInt8>) -> Range<Int>? {
    guard bytes.count > 0, bytes[0] != UInt8(ascii: "/"), let end = try? endOfAuthority(bytes) else { return nil }
    return (bytes[4] == UInt8(ascii: ":") ? 7 : 8)..<end
  }

  /// Whether the byte may be part of a host with a port. User names are not allowed (RFC 9110 §4.2.4).
  private static func isOfHost(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    case UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: ":"),
      UInt8(ascii: "["), UInt8(ascii: "]"):
      true
    default: false
    }
  }

  /// `bytes.count` when the byte is not found.
  private static func index(of byte: UInt8, in bytes: Span<UInt8>, from start: Int) -> Int {
    var index = start
    while index < bytes.count, bytes[index] != byte { index += 1 }
    return index
  }

  private static func segments(of path: Span<UInt8>) throws(Refusal) -> [String] {
    guard path.count > 1 else { return [] }
    var result: [String] = []
    result.reserveCapacity(6)
    var start = 1
    while true {
      let end = index(of: UInt8(ascii: "/"), in: path, from: start)
      result.append(try segment(path.extracting(start..<end)))
      guard end < path.count else { return result }
      start = end + 1
    }
  }

  private static func segment(_ raw: Span<UInt8>) throws(Refusal) -> String {
    guard !raw.isEmpty else { throw .emptySegment }
    var text = text(raw)
    if index(of: UInt8(ascii: "%"), in: raw, from: 0) < raw.count {
      guard let decoded = percentDecoded(text.utf8[...], plusIsSpace: false) else { throw .malformed }
      text = decoded
    }
    guard text != ".", text != ".." else { throw .hostile }
    let bytes = text.utf8Span.span
    for index in bytes.indices {
      switch bytes[index] {
      case 0..<0x20, 0x7F, UInt8(ascii: "/"), UInt8(ascii: "\\"): throw .hostile
      default: break
      }
    }
    return text
  }

  private static func text(_ bytes: Span<UInt8>) -> String {
    String(unsafeUninitializedCapacity: bytes.count) { room in
      for index in bytes.indices { room.initializeElement(at: index, to: bytes[index]) }
      return bytes.count
    }
  }

  /// The value of the first query item of that name. Names are compared as they are written, since caches do: with an escape
  /// in its name, `_HLS_msn` would change the response and not the key.
  package func query(_ name: String) -> String? {
    guard !rawQuery.isEmpty else { return nil }
    for item in rawQuery.utf8.split(separator: UInt8(ascii: "&")) {
      let parts = item.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard let key = parts.first, key.elementsEqual(name.utf8) else { continue }
      return parts.count < 2 ? "" : Self.percentDecoded(parts[1], plusIsSpace: true)
    }
    return nil
  }

  /// Nil for an escape without two hexadecimal digits, and for invalid UTF-8.
  private static func percentDecoded(_ raw: Substring.UTF8View, plusIsSpace: Bool) -> String? {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(raw.count)
    var iterator = raw.makeIterator()
    while let byte = iterator.next() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = iterator.next().flatMap(hexValue), let low = iterator.next().flatMap(hexValue) else {
          return nil
        }
        bytes.append(high << 4 | low)
      case UInt8(ascii: "+") where plusIsSpace: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static func hexValue(_ byte: UInt8) -> UInt8? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): byte &- UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): byte &- UInt8(ascii: "a") &+ 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): byte &- UInt8(ascii: "A") &+ 10
    default: nil
    }
  }
}
