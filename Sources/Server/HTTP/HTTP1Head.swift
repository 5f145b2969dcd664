internal import NIOCore
internal import NIOHTTP1

/// Writes the head of a response (RFC 9112 §4, §5) with the fields of every response: Date, CORS and nosniff.
enum HTTP1Head {
  /// How the recipient finds the end of the body.
  enum Framing {
    /// No body can follow: 204 and 304.
    case bodiless
    /// Content-Length, also in the response to HEAD.
    case length(Int)
    /// Transfer-Encoding: chunked.
    case chunked
    /// For HTTP/1.0: the body ends when the connection closes.
    case untilClose
  }

  /// The Connection field. HTTP/1.1 implies that the connection continues, HTTP/1.0 that it ends.
  enum Persistence {
    case implied
    case close
    case keepAlive
  }

  /// The fields of every response, with their line ends.
  private static let common = ByteBuffer(
    string: ResponseHead.common.map { "\($0.name): \($0.value)\r\n" }.joined())

  /// Writes status line, fields and the empty line. Returns the position of the date in `buffer`.
  @discardableResult
  static func write(
    _ status: HTTPResponseStatus, fields: [HeaderField], entityTag: String?, framing: Framing,
    persistence: Persistence, date: HTTPDate, into buffer: inout ByteBuffer
  ) -> Int {
    switch status {
    case .ok: buffer.writeStaticString("HTTP/1.1 200 OK\r\nDate: ")
    default: buffer.writeString("HTTP/1.1 \(status.code) \(status.reasonPhrase)\r\nDate: ")
    }
    let dateIndex = buffer.writerIndex
    buffer.writeString(date.text)
    buffer.writeStaticString("\r\n")
    for field in fields {
      buffer.writeString(field.name)
      buffer.writeStaticString(": ")
      buffer.writeString(field.value)
      buffer.writeStaticString("\r\n")
    }
    if let entityTag {
      buffer.writeStaticString("ETag: ")
      buffer.writeString(entityTag)
      buffer.writeStaticString("\r\n")
    }
    switch framing {
    case .bodiless, .untilClose: break
    case .length(let length):
      buffer.writeStaticString("Content-Length: ")
      buffer.writeString(String(length))
      buffer.writeStaticString("\r\n")
    case .chunked: buffer.writeStaticString("Transfer-Encoding: chunked\r\n")
    }
    switch persistence {
    case .implied: break
    case .close: buffer.writeStaticString("Connection: close\r\n")
    case .keepAlive: buffer.writeStaticString("Connection: keep-alive\r\n")
    }
    buffer.writeImmutableBuffer(common)
    buffer.writeStaticString("\r\n")
    return dateIndex
  }
}
