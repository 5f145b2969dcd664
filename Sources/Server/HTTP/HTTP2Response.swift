internal import NIOCore
internal import NIOHTTP1
internal import Storage

/// A response in the form of HTTP/2 (RFC 9113 §8.3.2): its encoded field section, and the body for DATA frames. The section
/// depends on nothing that a connection has sent, so all connections get the same bytes.
struct HTTP2Response {
  enum Body {
    /// Of known length; empty when no body follows the head.
    case pieces([BodyPiece])
    case live(any LiveBody)
  }

  /// The encoded field section.
  let head: ByteBuffer
  let body: Body
  /// Of a body of known length.
  let length: Int
  /// As `[BodyPiece].own`; none of a cached body.
  private(set) var own = (bytes: 0, end: 0)
  /// No piece of the body is on a disk.
  let isInMemory: Bool
  /// The body in one buffer if it has several, for those who get it at once.
  private(set) var whole: [BodyPiece] = []

  init(_ plan: ResponsePlan, date: HTTPDate) {
    switch plan {
    case .cached(let cached, let acceptsGzip, let sendsBody):
      let (head, bytes) = cached.parts(acceptsGzip: acceptsGzip)
      self.init(head, .pieces(sendsBody && bytes.readableBytes > 0 ? [.bytes(bytes)] : []), date)
    case .complete(let head, let pieces):
      self.init(head, .pieces(pieces), date)
      own = pieces.own
    case .live(let head, let live):
      self.init(head, .live(live), date)
    }
  }

  private init(_ head: ResponseHead, _ body: Body, _ date: HTTPDate) {
    self.head = Self.section(head, date)
    self.body = body
    if case .pieces(let pieces) = body {
      whole = pieces
      length = pieces.totalLength
      isInMemory = !pieces.contains { if case .file(let range) = $0 { range.file.kind == .disk } else { false } }
    } else {
      (length, isInMemory) = (0, false)
    }
  }

  /// The interim response that lets the client send its body (RFC 9110 §10.1.1).
  static let goOn = FieldSectionWriter(status: 100).bytes

  private static func section(_ head: ResponseHead, _ date: HTTPDate) -> ByteBuffer {
    var section = FieldSectionWriter(status: Int(head.status.code))
    section.add("date", date.text)
    for field in head.fields { section.add(field.name.lowercased(), field.value) }
    if let entityTag = head.entityTag { section.add("etag", entityTag) }
    if case .known(let length) = head.length { section.add("content-length", String(length)) }
    for (name, value) in common { section.add(name, value) }
    return section.bytes
  }

  private static let common = ResponseHead.common.map { ($0.name.lowercased(), $0.value) }
}

extension HTTP2Response: FlatForm {
  /// The pieces stay, too: a stream whose window stays closed holds none of the media.
  var flat: HTTP2Response {
    if whole.count == 1, case .bytes = whole[0] { return self }
    guard isInMemory, !whole.isEmpty, let bytes = whole.flattened() else { return self }
    var flat = self
    flat.whole = [.bytes(bytes)]
    return flat
  }
}
