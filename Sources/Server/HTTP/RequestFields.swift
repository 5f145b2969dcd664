internal import NIOCore
package import NIOHTTP1

/// The header fields of a request: of HTTP/1.1 as they were received, of HTTP/2 in the same form. A value becomes a string only
/// when it is read, and most never are.
package struct RequestFields: Sendable {
  package static let empty = RequestFields(ByteBuffer(), [])

  /// Checked lines of `name: value` with line ends.
  let lines: ByteBuffer
  /// The frequently read names among them.
  let known: Known

  init(_ lines: ByteBuffer, _ known: Known) { (self.lines, self.known) = (lines, known) }

  /// Fields whose names and values hold no line ends.
  package static func list(_ fields: HTTPHeaders) -> RequestFields {
    RequestFields(
      ByteBuffer(string: fields.map { "\($0.name): \($0.value)\r\n" }.joined()),
      fields.reduce(into: []) { $0.insert(Known($1.name.utf8Span.span)) })
  }

  /// Names that are read for each request; a bit tells whether a search can succeed.
  package struct Known: OptionSet, Sendable {
    package let rawValue: UInt8
    package static let range = Known(rawValue: 1)
    static let ifRange = Known(rawValue: 2)
    static let ifNoneMatch = Known(rawValue: 4)
    static let acceptEncoding = Known(rawValue: 8)
    static let userAgent = Known(rawValue: 16)
    static let authorization = Known(rawValue: 32)

    /// Empty for other names.
    @inline(__always)
    init(_ name: Span<UInt8>) {
      switch name.count {
      case 5 where name.isField("range"): self = .range
      case 8 where name.isField("if-range"): self = .ifRange
      case 10 where name.isField("user-agent"): self = .userAgent
      case 13 where name.isField("if-none-match"): self = .ifNoneMatch
      case 13 where name.isField("authorization"): self = .authorization
      case 15 where name.isField("accept-encoding"): self = .acceptEncoding
      default: self = []
      }
    }

    package init(rawValue: UInt8) { self.rawValue = rawValue }
  }

  /// Whether the response can depend on fields: conditions and ranges.
  var areConditional: Bool { !known.isDisjoint(with: [.range, .ifRange, .ifNoneMatch]) }

  /// Whether the client sends a key or token of its own.
  var haveAuthorization: Bool { known.contains(.authorization) }

  /// The value of the first field of that name, without regard to case.
  package func first(_ name: String) -> String? {
    let wanted = Known(name.utf8Span.span)
    guard wanted.isEmpty || known.contains(wanted) else { return nil }
    var found: String?
    forEach { key, value in
      guard Self.areEqual(key, name) else { return true }
      found = String(copying: value)
      return false
    }
    return found
  }

  /// The values of all fields of that name, without regard to case, in order.
  package func all(_ name: String) -> [String] {
    var found: [String] = []
    forEach { key, value in
      if Self.areEqual(key, name) { found.append(String(copying: value)) }
      return true
    }
    return found
  }

  /// All fields, in order.
  package var all: [(name: String, value: String)] {
    var found: [(name: String, value: String)] = []
    forEach { key, value in
      found.append((String(copying: key), String(copying: value)))
      return true
    }
    return found
  }

  /// A hash of the client's User-Agent.
  var clientHash: Int {
    guard known.contains(.userAgent) else { return 0 }
    var hash = 0
    forEach { key, value in
      guard key.count == 10, key.isField("user-agent") else { return true }
      hash = Int(truncatingIfNeeded: value.mixed())
      return false
    }
    return hash
  }

  /// `body` returns whether to continue.
  func forEach(_ body: (_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool) {
    let bytes = lines.readableBytesUInt8Span
    var start = 0
    while start < bytes.count {
      var colon = start
      while colon < bytes.count, bytes[colon] != UInt8(ascii: ":") { colon += 1 }
      guard colon < bytes.count else { return }
      let end = bytes.endOfText(from: colon + 1)
      let value = bytes.extracting(bytes.trimmed(colon + 1..<end))
      guard body(bytes.extracting(start..<colon), value) else { return }
      start = end + 2
    }
  }

  private static func areEqual(_ bytes: Span<UInt8>, _ name: String) -> Bool {
    let name = name.utf8Span.span
    guard bytes.count == name.count else { return false }
    for index in bytes.indices where bytes[index].lowercased != name[index].lowercased { return false }
    return true
  }
}
