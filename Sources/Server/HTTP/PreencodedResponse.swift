package import NIOCore
package import NIOHTTP1
internal import NIOPosix
internal import Synchronization

/// A whole HTTP/1.1 response in one buffer, made once and sent to all clients: a rendered playlist, a page. A request then
/// costs one write. HTTP/2 has a form of its own (`HTTP2Response`), made of `fields` and `body`.
///
/// The first response in a new second updates the date. The compressed form is made when a client first accepts it. Bodies
/// above `Gzip.largestInline` are compressed on a thread pool; requests before the end get the plain form.
package final class PreencodedResponse: Sendable {
  /// One form of the response, ready to send.
  struct Encoded: Sendable {
    /// Head and body.
    var bytes: ByteBuffer
    /// The length of the head; the response to HEAD ends there.
    let headLength: Int
    /// The position of the 29 bytes of the date.
    fileprivate let dateIndex: Int
    /// The second of the date.
    fileprivate var second: Int64

    /// The head alone, for HEAD.
    var head: ByteBuffer { bytes.getSlice(at: bytes.readerIndex, length: headLength) ?? bytes }
  }

  private enum CompressedForm {
    case unknown
    case inTheMaking
    /// Compression does not make it smaller.
    case none
    case ready(Encoded, body: ByteBuffer)
  }

  private struct State {
    var identity: Encoded
    var gzip: CompressedForm
  }

  package let status: HTTPResponseStatus
  /// The strong tag of the plain form.
  package let entityTag: String
  /// The fields of the route, and Vary.
  package let fields: [HeaderField]
  /// The plain body.
  package let body: ByteBuffer
  private let state: Mutex<State>

  /// Without `entityTag`, one is made of the body.
  package init(
    status: HTTPResponseStatus = .ok, type: ContentType, cache: CachePolicy, headers: [HeaderField] = [],
    entityTag: String? = nil, body: ByteBuffer
  ) {
    let isCompressible = type.isCompressible && body.readableBytes >= Gzip.smallestBody
    self.status = status
    self.entityTag = entityTag ?? EntityTag.of(body)
    self.body = body
    fields =
      [HeaderField("Content-Type", type.rawValue), HeaderField("Cache-Control", cache.value)]
      + (type.isCompressible ? [HeaderField("Vary", "Accept-Encoding")] : []) + headers
    let identity = Self.encode(
      status, fields: fields, entityTag: self.entityTag, body: body, persistence: .implied, date: HTTPDate(second: 0))
    state = Mutex(State(identity: identity, gzip: isCompressible ? .unknown : .none))
  }

  /// The form for a client with or without gzip, with this date.
  func encoded(acceptsGzip: Bool, date: HTTPDate) -> Encoded {
    if acceptsGzip, let compressed = compressedForm(date: date) { return compressed }
    return state.withLock { state in
      Self.set(date, in: &state.identity)
      return state.identity
    }
  }

  /// The same with a Connection field, for the rare request that ends the connection or uses HTTP/1.0.
  func encoded(acceptsGzip: Bool, persistence: HTTP1Head.Persistence, date: HTTPDate) -> Encoded {
    let (head, body) = parts(acceptsGzip: acceptsGzip)
    return Self.encode(
      head.status, fields: head.fields, entityTag: head.entityTag ?? entityTag, body: body, persistence: persistence,
      date: date)
  }

  /// Head and body of the form for a client with or without gzip.
  func parts(acceptsGzip: Bool) -> (head: ResponseHead, body: ByteBuffer) {
    let compressed = acceptsGzip ? compressedBody() : nil
    let body = compressed ?? body
    let head = ResponseHead(
      status: status, fields: compressed == nil ? fields : fields + [Self.gzipField],
      entityTag: compressed == nil ? entityTag : EntityTag.compressed(entityTag), length: .known(body.readableBytes))
    return (head, body)
  }

  /// The compressed form is being made on another thread.
  var isBeingCompressed: Bool { state.withLock { if case .inTheMaking = $0.gzip { true } else { false } } }

  private static let gzipField = HeaderField("Content-Encoding", "gzip")

  private func compressedForm(date: HTTPDate) -> Encoded? {
    beginCompressing()
    return state.withLock { state in
      guard case .ready(var encoded, let body) = state.gzip else { return nil }
      Self.set(date, in: &encoded)
      state.gzip = .ready(encoded, body: body)
      return encoded
    }
  }

  private func compressedBody() -> ByteBuffer? {
    beginCompressing()
    return state.withLock { state in
      guard case .ready(_, let body) = state.gzip else { return nil }
      return body
    }
  }

  private func beginCompressing() {
    let mustMake = state.withLock { state in
      guard case .unknown = state.gzip else { return false }
      state.gzip = .inTheMaking
      return true
    }
    guard mustMake else { return }
    if body.readableBytes <= Gzip.largestInline {
      makeCompressedForm()
    } else {
      NIOSingletons.posixBlockingThreadPool.submit { _ in self.makeCompressedForm() }
    }
  }

  private func makeCompressedForm() {
    let compressed = Gzip.compressed(body)
    let form: CompressedForm
    if let compressed, compressed.readableBytes < body.readableBytes {
      let encoded = Self.encode(
        status, fields: fields + [Self.gzipField], entityTag: EntityTag.compressed(entityTag), body: compressed,
        persistence: .implied, date: HTTPDate(second: 0))
      form = .ready(encoded, body: compressed)
    } else {
      form = .none
    }
    state.withLock { $0.gzip = form }
  }

  private static func set(_ date: HTTPDate, in encoded: inout Encoded) {
    guard encoded.second != date.second else { return }
    encoded.bytes.setString(date.text, at: encoded.dateIndex)
    encoded.second = date.second
  }

  private static func encode(
    _ status: HTTPResponseStatus, fields: [HeaderField], entityTag: String, body: ByteBuffer,
    persistence: HTTP1Head.Persistence, date: HTTPDate
  ) -> Encoded {
    var buffer = ByteBuffer()
    buffer.reserveCapacity(512 + body.readableBytes)
    let dateIndex = HTTP1Head.write(
      status, fields: fields, entityTag: entityTag, framing: .length(body.readableBytes), persistence: persistence,
      date: date, into: &buffer)
    let headLength = buffer.readableBytes
    buffer.writeImmutableBuffer(body)
    return Encoded(bytes: buffer, headLength: headLength, dateIndex: dateIndex, second: date.second)
  }
}
