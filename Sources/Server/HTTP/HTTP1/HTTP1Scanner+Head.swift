internal import NIOCore
internal import NIOHTTP1

extension HTTP1Scanner {
  /// The parts of a request line, as offsets from its first byte.
  struct RequestLine {
    var method = HTTPRequest.Method.get
    var version = HTTPVersion.http1_1
    var target = 0..<0
    /// Bytes of the line, with the line end.
    var length = 0
  }

  /// What the connection must know from the fields.
  struct FieldFacts {
    var known: RequestFields.Known = []
    var hosts = 0
    var contentLength: Int?
    var isChunked = false
    var expectation = RequestHead.Expectation.nothing
    var closes = false
    var keepsAlive = false
  }

  /// The length of the longest method name.
  private static let methodBytes = 7

  /// Takes a whole head; nil while it is incomplete.
  mutating func head(_ bytes: inout ByteBuffer) throws(Fault) -> RequestPart? {
    if case .requestLine = place {
      if try passEmptyLine(&bytes) { return nil }
      guard try requestLine(bytes.readableBytesUInt8Span) else { return nil }
      place = .fields
      scanned = line.length
    }
    guard try fields(bytes.readableBytesUInt8Span) else {
      try checkUnfinished(bytes.readableBytesUInt8Span)
      return nil
    }
    let body = try framing()
    let start = bytes.readerIndex
    guard let target = bytes.getSlice(at: start + line.target.lowerBound, length: line.target.count),
      let lines = bytes.getSlice(at: start + line.length, length: scanned - line.length - 2)
    else { throw .malformed("the head is not there") }
    bytes.moveReaderIndex(forwardBy: scanned)
    let head = RequestHead(
      method: line.method, version: line.version, target: target, fields: RequestFields(lines, facts.known),
      hosts: facts.hosts, body: body, expectation: facts.expectation,
      keepsAlive: !facts.closes && (line.version == .http1_1 || facts.keepsAlive))
    reset()
    place =
      switch body {
      case .none: .requestLine
      case .length(let count): .body(count)
      case .open: .chunkSize
      }
    return .head(head)
  }

  /// Skips one empty line before the request (RFC 9112 §2.2). True when more bytes are needed to decide.
  private mutating func passEmptyLine(_ bytes: inout ByteBuffer) throws(Fault) -> Bool {
    guard let first = bytes.peekInteger(as: UInt8.self) else { return true }
    guard first == .carriageReturn, !skippedEmptyLine else { return false }
    guard let second = bytes.getInteger(at: bytes.readerIndex + 1, as: UInt8.self) else { return true }
    guard second == .lineFeed else { throw .malformed("the request begins with a line end") }
    skippedEmptyLine = true
    bytes.moveReaderIndex(forwardBy: 2)
    return bytes.readableBytes == 0
  }

  // MARK: The request line (RFC 9112 §3)

  private mutating func requestLine(_ bytes: Span<UInt8>) throws(Fault) -> Bool {
    var space = 0
    while space < bytes.count, bytes[space] != 0x20 {
      guard bytes[space].isToken else { throw .malformed("the request line has no method") }
      guard space < 32 else { throw .unknownMethod }
      space &+= 1
    }
    guard space < bytes.count else { return false }
    guard let method = Self.method(bytes.extracting(0..<space)) else { throw .unknownMethod }
    let start = space &+ 1
    var end = start &+ searched
    while end < bytes.count, 0x21...0x7E ~= bytes[end] { end &+= 1 }
    searched = end &- start
    // The limit includes the next bytes, so that the result does not depend on how the line is split.
    guard end &- start <= limits.targetBytes else { throw .targetTooLong(end &- start) }
    guard end < bytes.count else { return false }
    guard bytes[end] == 0x20, end > start else { throw .malformed("the request line has no target") }
    guard let version = try Self.version(bytes.extracting(end &+ 1..<min(bytes.count, end &+ 11))) else { return false }
    line = RequestLine(method: method, version: version, target: start..<end, length: end &+ 11)
    searched = 0
    return true
  }

  static func method(_ name: Span<UInt8>) -> HTTPRequest.Method? {
    switch name.count {
    case 3 where name.isEqual(to: "GET".utf8Span.span): .get
    case 3 where name.isEqual(to: "PUT".utf8Span.span): .put
    case 4 where name.isEqual(to: "HEAD".utf8Span.span): .head
    case 4 where name.isEqual(to: "POST".utf8Span.span): .post
    case 5 where name.isEqual(to: "PATCH".utf8Span.span): .patch
    case 6 where name.isEqual(to: "DELETE".utf8Span.span): .delete
    case 7 where name.isEqual(to: "OPTIONS".utf8Span.span): .options
    default: nil
    }
  }

  /// Parses `HTTP/1.1` and the line end; nil while they are incomplete.
  private static func version(_ bytes: Span<UInt8>) throws(Fault) -> HTTPVersion? {
    let wanted = "HTTP/".utf8Span.span
    for index in bytes.indices {
      let byte = bytes[index]
      let isRight =
        switch index {
        case 0..<5: byte == wanted[index]
        case 5, 7: byte.isDigit
        case 6: byte == UInt8(ascii: ".")
        case 8: byte == .carriageReturn
        default: byte == .lineFeed
        }
      guard isRight else { throw .malformed("the request line ends badly") }
    }
    guard bytes.count >= 8 else { return nil }
    switch (bytes[5], bytes[7]) {
    case (0x31, 0x31): return bytes.count < 10 ? nil : .http1_1
    case (0x31, 0x30): return bytes.count < 10 ? nil : .http1_0
    default: throw .unknownVersion
    }
  }

  // MARK: Fields (RFC 9112 §5)

  /// Scans the lines after `scanned`. True when the empty line was found; `scanned` is then after it.
  mutating func fields(_ bytes: Span<UInt8>) throws(Fault) -> Bool {
    while scanned < bytes.count {
      let end = bytes.endOfText(from: scanned &+ searched)
      guard end < bytes.count else {
        searched = max(0, end &- scanned)
        return false
      }
      guard bytes[end] == .carriageReturn else { throw .malformed("a field has a control character") }
      guard end &+ 1 < bytes.count else {
        searched = end &- scanned
        return false
      }
      guard bytes[end &+ 1] == .lineFeed else { throw .malformed("a line ends without a line feed") }
      let start = scanned
      scanned = end &+ 2
      searched = 0
      guard end > start else { return true }
      try field(bytes.extracting(start..<end))
    }
    return false
  }

  private mutating func field(_ bytes: Span<UInt8>) throws(Fault) {
    let colon = bytes.endOfToken(from: 0)
    guard colon > 0, colon < bytes.count, bytes[colon] == UInt8(ascii: ":") else {
      throw .malformed("a field has no proper name")
    }
    let name = bytes.extracting(0..<colon)
    let place = bytes.trimmed(colon &+ 1..<bytes.count)
    let value = bytes.extracting(place)
    fieldCount &+= 1
    // Blanks count: they are stored, too, until the head is complete.
    fieldBytes &+= bytes.count
    guard fieldCount <= limits.headerCount, bytes.count <= limits.headerFieldBytes,
      fieldBytes &+ line.target.count <= limits.headerBytes
    else { throw .fieldsTooLarge }
    guard case .fields = self.place else { return }
    try facts.learn(name, value, isLast: place.upperBound == bytes.count)
  }

  /// Checks that an incomplete line or head can still become valid.
  func checkUnfinished(_ bytes: Span<UInt8>) throws(Fault) {
    guard scanned < bytes.count else { return }
    guard bytes.count &- scanned <= limits.headerFieldBytes &+ 1 else { throw .fieldsTooLarge }
    guard fieldBytes &+ line.target.count &+ bytes.count &- scanned <= limits.headerBytes &+ 64 else {
      throw .fieldsTooLarge
    }
    guard bytes[scanned].isToken || bytes[scanned] == .carriageReturn else {
      throw .malformed("a field has no proper name")
    }
  }

  /// RFC 9112 §6.1, §6.2.
  private func framing() throws(Fault) -> RequestHead.Body {
    if facts.isChunked {
      guard facts.contentLength == nil else { throw .malformed("the body has two lengths") }
      guard line.version == .http1_1 else { throw .malformed("HTTP/1.0 has no transfer codings") }
      return .open
    }
    guard let length = facts.contentLength, length > 0 else { return .none }
    return .length(length)
  }
}

extension HTTP1Scanner.FieldFacts {
  /// Evaluates a field of the head. `isLast`: the line ends with the value. No blanks may follow the value of a field that gives
  /// the body's length, since servers disagree about them.
  @inline(__always)
  fileprivate mutating func learn(
    _ name: Span<UInt8>, _ value: Span<UInt8>, isLast: Bool
  ) throws(HTTP1Scanner.Fault) {
    switch name.count {
    case 4 where name.isField("host"): hosts &+= 1
    case 6 where name.isField("expect"): expectation = value.isField("100-continue") ? .leave : .other
    case 10 where name.isField("connection"): learnConnection(value)
    case 14 where name.isField("content-length"):
      guard contentLength == nil else { throw .malformed("there are two Content-Length fields") }
      guard isLast else { throw .malformed("Content-Length is no number") }
      contentLength = try Self.number(value)
    case 17 where name.isField("transfer-encoding"):
      guard !isChunked, isLast, value.isField("chunked") else {
        throw .malformed("the only transfer coding is chunked")
      }
      isChunked = true
    default: known.formUnion(RequestFields.Known(name))
    }
  }

  private static func number(_ digits: Span<UInt8>) throws(HTTP1Scanner.Fault) -> Int {
    guard 1...18 ~= digits.count else { throw .malformed("Content-Length is no number") }
    var number = 0
    for index in digits.indices {
      guard digits[index].isDigit else { throw .malformed("Content-Length is no number") }
      number = number &* 10 &+ Int(digits[index] & 0x0F)
    }
    return number
  }

  /// A list of tokens (RFC 9110 §7.6.1).
  private mutating func learnConnection(_ value: Span<UInt8>) {
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != UInt8(ascii: ",") { end &+= 1 }
      let token = value.extracting(value.trimmed(start..<end))
      if token.isField("close") { closes = true }
      if token.isField("keep-alive") { keepsAlive = true }
      start = end &+ 1
    }
  }
}
