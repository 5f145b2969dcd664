internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// A response in the form of HTTP/1.1 or 1.0 (RFC 9112): the bytes of its head, its body, and whether the connection
/// continues.
struct HTTP1Response {
  enum Content {
    /// Head and body in one buffer.
    case buffer(ByteBuffer)
    /// The head, then the body.
    case pieces(ByteBuffer, [BodyPiece])
    /// The head, then the output of the body. Without framing, the close of the connection ends the body.
    case live(ByteBuffer, any LiveBody, ChunkedFraming?)
  }

  /// A cached body of more bytes is not copied for one client.
  private static let copiedBytes = 16 * 1024

  let content: Content
  /// Whether the connection continues.
  let keepsAlive: Bool

  /// `version` is that of the request; `keepsAlive` tells whether both sides want to continue.
  init(_ plan: ResponsePlan, version: HTTPVersion, keepsAlive: Bool, date: HTTPDate) {
    switch plan {
    case .cached(let cached, let acceptsGzip, let sendsBody):
      let persistence = Self.persistence(keepsAlive: keepsAlive, version: version)
      guard cached.body.readableBytes <= (persistence == .implied ? [BodyPiece].flatBytes : Self.copiedBytes) else {
        // Without a copy for this client, or for this second.
        let (head, body) = cached.parts(acceptsGzip: acceptsGzip)
        let (bytes, persists) = Self.encoded(head, version: version, keepsAlive: keepsAlive, date: date)
        self.keepsAlive = persists
        content = sendsBody ? .pieces(bytes, [.bytes(body)]) : .buffer(bytes)
        return
      }
      self.keepsAlive = keepsAlive
      let encoded: PreencodedResponse.Encoded
      switch persistence {
      case .implied: encoded = cached.encoded(acceptsGzip: acceptsGzip, date: date)
      case let said: encoded = cached.encoded(acceptsGzip: acceptsGzip, persistence: said, date: date)
      }
      content = .buffer(sendsBody ? encoded.bytes : encoded.head)
    case .complete(let head, let pieces):
      let (bytes, persists) = Self.encoded(head, version: version, keepsAlive: keepsAlive, date: date)
      self.keepsAlive = persists
      content = pieces.isEmpty ? .buffer(bytes) : .pieces(bytes, pieces)
    case .live(let head, let body):
      let (bytes, persists) = Self.encoded(head, version: version, keepsAlive: keepsAlive, date: date)
      self.keepsAlive = persists
      content = .live(bytes, body, version >= .http1_1 ? ChunkedFraming() : nil)
    }
  }

  private static func encoded(
    _ head: ResponseHead, version: HTTPVersion, keepsAlive: Bool, date: HTTPDate
  ) -> (ByteBuffer, keepsAlive: Bool) {
    var persists = keepsAlive
    let framing: HTTP1Head.Framing
    switch head.length {
    case .bodiless: framing = .bodiless
    case .known(let length): framing = .length(length)
    case .open where version >= .http1_1: framing = .chunked
    case .open:
      framing = .untilClose
      persists = false
    }
    var bytes = ByteBuffer()
    bytes.reserveCapacity(512)
    HTTP1Head.write(
      head.status, fields: head.fields, entityTag: head.entityTag, framing: framing,
      persistence: persistence(keepsAlive: persists, version: version), date: date, into: &bytes)
    return (bytes, persists)
  }

  private static func persistence(keepsAlive: Bool, version: HTTPVersion) -> HTTP1Head.Persistence {
    if version >= .http1_1 { return keepsAlive ? .implied : .close }
    return keepsAlive ? .keepAlive : .close
  }
}

extension HTTP1Response.Content: FlatForm {
  var flat: Self {
    guard case .pieces(let head, let pieces) = self, let bytes = pieces.flattened(after: head) else { return self }
    return .buffer(bytes)
  }
}

/// The chunks of an endless body (RFC 9112 §7.1).
struct ChunkedFraming {
  /// The line end of a chunk is sent with the size of the next one: alone it would be a packet of two bytes.
  private var owesLineEnd = false

  /// The pieces as one chunk.
  mutating func chunk(_ pieces: [BodyPiece]) -> [BodyPiece] {
    let size = (owesLineEnd ? "\r\n" : "") + String(pieces.totalLength, radix: 16) + "\r\n"
    owesLineEnd = true
    return [.bytes(ByteBuffer(string: size))] + pieces
  }

  /// The bytes that end the body.
  var end: BodyPiece { .bytes(ByteBuffer(string: (owesLineEnd ? "\r\n" : "") + "0\r\n\r\n")) }
}

extension HTTPVersion {
  static func >= (left: HTTPVersion, right: HTTPVersion) -> Bool {
    (left.major, left.minor) >= (right.major, right.minor)
  }
}
