internal import NIOCore
internal import NIOHTTP1

/// Checks the fields of a request (RFC 9113 §8.1 to §8.3) and makes the head of it, in the form of HTTP/1.1. So
/// `RequestAssembler` and the routes see no difference.
struct HTTP2HeadBuilder: FieldSectionReader.Taker {
  /// HTTP/2 in the form of `HTTPRequest.version`.
  static let version = HTTPVersion(major: 2, minor: 0)

  /// The pseudo-fields that came.
  private struct Pseudo: OptionSet {
    let rawValue: UInt8
    static let method = Pseudo(rawValue: 1)
    static let scheme = Pseudo(rawValue: 2)
    static let authority = Pseudo(rawValue: 4)
    static let path = Pseudo(rawValue: 8)
  }

  /// The limits that it needs. Each connection holds a copy.
  struct Limits {
    let headerFieldBytes: Int
    let headerBytes: Int
    let headerCount: Int

    init(_ limits: HTTPLimits) {
      headerFieldBytes = limits.headerFieldBytes
      headerBytes = limits.headerBytes
      headerCount = limits.headerCount
    }
  }

  /// The length of `host: `.
  private static let hostStart = 6

  private let limits: Limits
  /// Fields behind a body have no pseudo-fields (RFC 9113 §8.1).
  private let areTrailers: Bool
  private var pseudo: Pseudo = []
  private var method = HTTPRequest.Method.other
  private var isConnect = false
  private var target = ByteBuffer()
  private var lines = ByteBuffer()
  private var known: RequestFields.Known = []
  private var hosts = 0
  private var expectation = RequestHead.Expectation.nothing
  private var count = 0
  /// Names and values of all fields.
  private var bytes = 0
  /// A field stood behind the pseudo-fields.
  private var hasFields = false
  private var isMalformed = false
  private(set) var isTooLarge = false
  private(set) var contentLength: Int?
  /// Where the path stands in the section, if other sections may differ from this one there alone.
  private(set) var pathPlace: Range<Int>?

  init(limits: Limits, areTrailers: Bool = false) {
    self.limits = limits
    self.areTrailers = areTrailers
  }

  mutating func pathStood(at range: Range<Int>) { pathPlace = range }

  mutating func take(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    let size = name.count &+ value.count
    bytes &+= size
    if name.count > 0, name[0] == UInt8(ascii: ":") {
      takePseudo(name, value)
    } else {
      hasFields = true
      count &+= 1
      if size > limits.headerFieldBytes || bytes > limits.headerBytes || count > limits.headerCount {
        isTooLarge = true
      }
      // What is refused need not be looked at: a byte of a section may name 4 KiB of the table.
      guard !isTooLarge else { return }
      guard Self.isName(name), Self.isValue(value), learn(name, value) else { return isMalformed = true }
      guard !areTrailers else { return }
      if name.count == 4, name.isField("host") {
        // A host that equals :authority adds nothing. Another one is a second host (RFC 9113 §8.3.1).
        guard !isAuthority(value) else { return }
        hosts &+= 1
      }
      write(name, value)
    }
  }

  private mutating func takePseudo(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    let field: Pseudo? =
      switch name.count {
      case 5 where name.isField(":path"): .path
      case 7 where name.isField(":method"): .method
      case 7 where name.isField(":scheme"): .scheme
      case 10 where name.isField(":authority"): .authority
      default: nil
      }
    // Names are in lower case (RFC 9113 §8.2.1).
    guard let field, !areTrailers, !hasFields, !pseudo.contains(field), Self.isPseudoValue(value),
      name[1] >= UInt8(ascii: "a"), Self.isName(name.extracting(1..<name.count))
    else { return isMalformed = true }
    pseudo.insert(field)
    if bytes > limits.headerBytes || (field != .path && value.count > limits.headerFieldBytes) { isTooLarge = true }
    switch field {
    case .path:
      if !Self.isTarget(value) { isMalformed = true }
      if !isTooLarge { target.write(value) }
    case .method:
      isConnect = value.isEqual(to: "CONNECT".utf8Span.span)
      method = HTTP1Scanner.method(value) ?? .other
    case .authority:
      hosts &+= 1
      count &+= 1
      if !isTooLarge { write("host".utf8Span.span, value) }
    default: break
    }
  }

  /// What the connection must know of a field. False when it may not stand in HTTP/2.
  private mutating func learn(_ name: Span<UInt8>, _ value: Span<UInt8>) -> Bool {
    switch name.count {
    case 2 where name.isField("te"): return areTrailers || value.isField("trailers")
    case 6 where name.isField("expect"): expectation = value.isField("100-continue") ? .leave : .other
    case 7 where name.isField("upgrade"), 10 where name.isField("connection"), 10 where name.isField("keep-alive"),
      16 where name.isField("proxy-connection"), 17 where name.isField("transfer-encoding"):
      return false
    case 14 where name.isField("content-length"):
      guard !areTrailers else { return true }
      guard let length = Self.number(value), contentLength == nil || contentLength == length else { return false }
      contentLength = length
    default: known.formUnion(RequestFields.Known(name))
    }
    return true
  }

  /// Whether :authority came and names the same host, without regard to case and to the port of https (RFC 3986 §6.2).
  private func isAuthority(_ host: Span<UInt8>) -> Bool {
    let lines = lines.readableBytesUInt8Span
    // It is the first line.
    guard pseudo.contains(.authority), lines.count >= Self.hostStart else { return false }
    let own = lines.extracting(Self.hostStart..<lines.endOfText(from: Self.hostStart))
    let count = Self.lengthWithoutPort(own)
    guard Self.lengthWithoutPort(host) == count else { return false }
    for index in 0..<count where own[index].lowercased != host[index].lowercased { return false }
    return true
  }

  private static func lengthWithoutPort(_ host: Span<UInt8>) -> Int {
    host.count >= 4 && host.extracting(last: 4).isField(":443") ? host.count &- 4 : host.count
  }

  private mutating func write(_ name: Span<UInt8>, _ value: Span<UInt8>) {
    lines.write(name)
    lines.writeStaticString(": ")
    lines.write(value)
    lines.writeStaticString("\r\n")
  }

  // MARK: The end of the section

  /// Whether the fields may stand where they stood.
  var isValid: Bool {
    guard !isMalformed else { return false }
    if areTrailers { return true }
    if isConnect { return pseudo == [.method, .authority] }
    return pseudo.isSuperset(of: [.method, .scheme, .path])
  }

  /// What the fields but for the path count for `HTTPLimits.headerBytes`.
  var bytesWithoutPath: Int { bytes &- (pseudo.contains(.path) ? target.readableBytes : 0) }

  /// The head of a valid section that is not too large. `isComplete`: no body follows.
  func head(isComplete: Bool) -> RequestHead {
    let length = contentLength.flatMap { $0 > 0 ? RequestHead.Body.length($0) : nil }
    return RequestHead(
      method: method, version: Self.version, target: target, fields: RequestFields(lines, known), hosts: hosts,
      body: isComplete ? .none : length ?? .open, expectation: expectation)
  }

  // MARK: Syntax

  /// A token without capital letters (RFC 9113 §8.2.1).
  private static func isName(_ name: Span<UInt8>) -> Bool {
    guard !name.isEmpty else { return false }
    for index in name.indices where !name[index].isToken || 0x41...0x5A ~= name[index] { return false }
    return true
  }

  /// As in HTTP/1.1: no control characters (RFC 9113 §8.2.1 forbids three of them; RFC 9110 §5.5 lets all be refused). No
  /// blanks at its ends either.
  private static func isValue(_ value: Span<UInt8>) -> Bool {
    value.isEmpty
      || !isBlank(value[0]) && !isBlank(value[value.count &- 1]) && value.endOfText(from: 0) == value.count
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }

  /// No pseudo-field's grammar has blanks or control characters; the target would end there in a request line.
  private static func isPseudoValue(_ value: Span<UInt8>) -> Bool {
    for index in value.indices where value[index] <= 0x20 || value[index] == 0x7F { return false }
    return true
  }

  /// Whether it may be the value of a path: one that begins with a slash, or the asterisk of OPTIONS (RFC 9113 §8.3.1), of the
  /// bytes that a request line may have.
  static func isTarget(_ target: Span<UInt8>) -> Bool {
    guard !target.isEmpty, target[0] == UInt8(ascii: "/") || (target.count == 1 && target[0] == UInt8(ascii: "*"))
    else {
      return false
    }
    for index in target.indices where !(0x21...0x7E ~= target[index]) { return false }
    return true
  }

  static func isTarget(_ target: ByteBuffer) -> Bool { isTarget(target.readableBytesUInt8Span) }

  private static func number(_ digits: Span<UInt8>) -> Int? {
    guard 1...18 ~= digits.count else { return nil }
    var number = 0
    for index in digits.indices {
      guard digits[index].isDigit else { return nil }
      number = number &* 10 &+ Int(digits[index] & 0x0F)
    }
    return number
  }
}

extension ByteBuffer {
  mutating func write(_ bytes: Span<UInt8>) {
    guard !bytes.isEmpty else { return }
    bytes.withUnsafeBytes { _ = writeBytes($0) }
  }
}
