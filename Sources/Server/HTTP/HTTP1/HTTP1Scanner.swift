internal import NIOCore
internal import NIOHTTP1

/// Finds requests in the bytes of an HTTP/1.1 connection: bytes go in, parts come out. The bytes of a head are kept; only the
/// positions of its fields, and their meaning for the body, are extracted. Each byte is scanned once, however the bytes are
/// split.
///
/// | RFC 9112 | what | here |
/// |---|---|---|
/// | §2.2 | line ends | CR LF and nothing else; one empty line before a request is skipped |
/// | §3 | request line | one space between its parts; methods that weir knows; printable ASCII; HTTP/1.1 or 1.0 |
/// | §5 | fields | no blanks before the colon, no folded lines, no control characters |
/// | §6 | framing | one Content-Length or `chunked`, never both, never twice |
/// | §7.1 | chunks | extensions and trailers are checked and dropped |
///
/// It is stricter than NIO's decoder and never accepts what that refuses. The differential test compares the two
/// (`HTTP1ScannerDifferentialTests` has the list of differences).
struct HTTP1Scanner {
  /// Why the bytes are not a request. The bytes after it cannot be parsed.
  enum Fault: Error, Equatable {
    /// Violates the grammar; the text says where.
    case malformed(String)
    /// A method that this server does not support.
    case unknownMethod
    case unknownVersion
    case targetTooLong(Int)
    case fieldsTooLarge
  }

  /// The position of the next byte in a request.
  enum Place {
    case requestLine
    case fields
    /// The remaining bytes of the body.
    case body(Int)
    case chunkSize
    case chunk(Int)
    /// After the data of a chunk.
    case chunkEnd
    case trailers
    case end
    case failed
  }

  /// The longest chunk size line, with extensions, in bytes.
  static let chunkLineBytes = 256

  /// The limits that a scanner needs. Each connection holds a copy, so it has no others.
  struct Limits {
    let targetBytes: Int
    let headerFieldBytes: Int
    let headerBytes: Int
    let headerCount: Int
  }

  let limits: Limits
  var place = Place.requestLine
  /// Bytes of the head or of the trailers that were scanned, from the reader index on.
  var scanned = 0
  /// Bytes of the incomplete line after `scanned` that contain no line end.
  var searched = 0
  /// Bytes of names and values in the head or the trailers so far.
  var fieldBytes = 0
  var fieldCount = 0
  var skippedEmptyLine = false
  var line = RequestLine()
  var facts = FieldFacts()

  init(limits: HTTPLimits) {
    self.limits = Limits(
      targetBytes: limits.targetBytes, headerFieldBytes: limits.headerFieldBytes, headerBytes: limits.headerBytes,
      headerCount: limits.headerCount)
  }

  /// Takes the next part from the front of `bytes`; nil when more bytes are needed. After a fault, each call throws.
  mutating func next(_ bytes: inout ByteBuffer) throws(Fault) -> RequestPart? {
    do throws(Fault) {
      return try part(&bytes)
    } catch {
      place = .failed
      throw error
    }
  }

  private mutating func part(_ bytes: inout ByteBuffer) throws(Fault) -> RequestPart? {
    while true {
      switch place {
      case .requestLine, .fields: return try head(&bytes)
      case .body(let left):
        guard let piece = take(left, from: &bytes) else { return nil }
        place = piece.readableBytes < left ? .body(left &- piece.readableBytes) : .end
        return .body(piece)
      case .end:
        reset()
        return .end
      case .chunkSize:
        guard let size = try chunkSize(&bytes) else { return nil }
        if size == 0 { startFields() }
        place = size > 0 ? .chunk(size) : .trailers
      case .chunk(let left):
        guard let piece = take(left, from: &bytes) else { return nil }
        place = piece.readableBytes < left ? .chunk(left &- piece.readableBytes) : .chunkEnd
        return .body(piece)
      case .chunkEnd:
        guard try lineEnd(&bytes) else { return nil }
        place = .chunkSize
      case .trailers:
        guard try trailers(&bytes) else { return nil }
        place = .end
      case .failed: throw .malformed("nothing can follow a fault")
      }
    }
  }

  /// Prepares for the next request.
  mutating func reset() {
    place = .requestLine
    skippedEmptyLine = false
    startFields()
  }

  private mutating func startFields() {
    scanned = 0
    searched = 0
    fieldBytes = 0
    fieldCount = 0
    facts = FieldFacts()
  }

  private func take(_ count: Int, from bytes: inout ByteBuffer) -> ByteBuffer? {
    let count = min(count, bytes.readableBytes)
    return count > 0 ? bytes.readSlice(length: count) : nil
  }

  // MARK: Chunks (RFC 9112 §7.1)

  /// Takes a chunk size line and returns the size; nil while the line is incomplete.
  private mutating func chunkSize(_ bytes: inout ByteBuffer) throws(Fault) -> Int? {
    let (size, length) = try Self.chunkLine(bytes.readableBytesUInt8Span)
    bytes.moveReaderIndex(forwardBy: length)
    return size
  }

  private static func chunkLine(_ bytes: Span<UInt8>) throws(Fault) -> (size: Int?, length: Int) {
    var size = 0
    var digits = 0
    while digits < bytes.count, let digit = bytes[digits].hexValue {
      guard digits < 8 else { throw .malformed("a chunk is too large") }
      size = size << 4 | Int(digit)
      digits += 1
    }
    guard digits < bytes.count else { return (nil, 0) }
    guard digits > 0, bytes[digits] == .carriageReturn || bytes[digits] == UInt8(ascii: ";") else {
      throw .malformed("a chunk has no size")
    }
    let end = bytes.endOfText(from: digits)
    guard end <= chunkLineBytes else { throw .malformed("the line of a chunk is too long") }
    guard end < bytes.count else { return (nil, 0) }
    guard bytes[end] == .carriageReturn else { throw .malformed("the line of a chunk has a control character") }
    guard end + 1 < bytes.count else { return (nil, 0) }
    guard bytes[end + 1] == .lineFeed else { throw .malformed("the line of a chunk ends badly") }
    guard areExtensions(bytes.extracting(digits..<end)) else {
      throw .malformed("the line of a chunk has a bad extension")
    }
    return (size, end + 2)
  }

  /// Whether the text is `;name`, `;name=value` or `;name="value"`, any number of times (RFC 9112 §7.1.1).
  private static func areExtensions(_ text: Span<UInt8>) -> Bool {
    var index = 0
    while index < text.count {
      guard text[index] == UInt8(ascii: ";") else { return false }
      let name = index &+ 1
      index = text.endOfToken(from: name)
      guard index > name else { return false }
      guard index < text.count, text[index] == UInt8(ascii: "=") else { continue }
      let value = index &+ 1
      if value < text.count, text[value] == UInt8(ascii: "\"") {
        index = value &+ 1
        while index < text.count, text[index] != UInt8(ascii: "\"") {
          index &+= text[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        guard index < text.count else { return false }
        index &+= 1
      } else {
        index = text.endOfToken(from: value)
        guard index > value else { return false }
      }
    }
    return true
  }

  /// Takes CR LF; false while it is incomplete.
  private func lineEnd(_ bytes: inout ByteBuffer) throws(Fault) -> Bool {
    guard let first = bytes.peekInteger(as: UInt8.self) else { return false }
    guard first == .carriageReturn else { throw .malformed("a chunk is longer than it says") }
    guard let second = bytes.getInteger(at: bytes.readerIndex + 1, as: UInt8.self) else { return false }
    guard second == .lineFeed else { throw .malformed("a chunk is longer than it says") }
    bytes.moveReaderIndex(forwardBy: 2)
    return true
  }

  /// Takes and drops the trailers and the empty line after them; false while they are incomplete.
  private mutating func trailers(_ bytes: inout ByteBuffer) throws(Fault) -> Bool {
    guard try fields(bytes.readableBytesUInt8Span) else {
      try checkUnfinished(bytes.readableBytesUInt8Span)
      return false
    }
    bytes.moveReaderIndex(forwardBy: scanned)
    return true
  }
}
