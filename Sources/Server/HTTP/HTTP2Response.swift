internal import NIOCore
internal import NIOHPACK
internal import NIOHTTP1
internal import Storage

/// A response in the form of HTTP/2 (RFC 9113 §8.3.2): its field section, and the body for DATA frames.
struct HTTP2Response {
  enum Body {
    /// Of known length; empty when no body follows the head.
    case pieces([BodyPiece])
    case live(any LiveBody)
  }

  let headers: HPACKHeaders
  let body: Body

  init(_ plan: ResponsePlan, date: HTTPDate) {
    switch plan {
    case .cached(let cached, let acceptsGzip, let sendsBody):
      let (head, bytes) = cached.parts(acceptsGzip: acceptsGzip)
      headers = Self.headers(head, date: date)
      body = .pieces(sendsBody && bytes.readableBytes > 0 ? [.bytes(bytes)] : [])
    case .complete(let head, let pieces):
      headers = Self.headers(head, date: date)
      body = .pieces(pieces)
    case .live(let head, let live):
      headers = Self.headers(head, date: date)
      body = .live(live)
    }
  }

  /// The interim response that lets the client send its body (RFC 9110 §10.1.1).
  static let goOn: HPACKHeaders = [":status": "100"]

  /// Fields that differ in each response are not added to the client's table (RFC 7541 §6.2.2).
  private static func headers(_ head: ResponseHead, date: HTTPDate) -> HPACKHeaders {
    var headers = HPACKHeaders()
    headers.reserveCapacity(head.fields.count + common.count + 4)
    headers.add(name: ":status", value: String(head.status.code))
    headers.add(name: "date", value: date.text)
    for field in head.fields {
      headers.add(
        name: field.name.lowercased(), value: field.value,
        indexing: field.name == "Content-Range" ? .nonIndexable : .indexable)
    }
    if let entityTag = head.entityTag { headers.add(name: "etag", value: entityTag, indexing: .nonIndexable) }
    if case .known(let length) = head.length {
      headers.add(name: "content-length", value: String(length), indexing: .nonIndexable)
    }
    for (name, value) in common { headers.add(name: name, value: value) }
    return headers
  }

  private static let common = ResponseHead.common.map { ($0.name.lowercased(), $0.value) }
}

extension HTTP2Response: FlatForm {
  /// Media stays where it is: a stream whose window stays closed then holds none of it.
  var flat: HTTP2Response { self }
}
