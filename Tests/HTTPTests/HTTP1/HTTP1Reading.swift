@testable import HTTP
import NIOCore
import NIOEmbedded
import NIOHTTP1

/// What a parser found in the bytes of a connection: weir's scanner, or NIO's decoder, which it is held against.
struct HTTP1Reading: Equatable {
  struct Request: Equatable {
    var method: String
    var target: String
    var version: String
    /// `name: value`, in order.
    var fields: [String]
    var keepsAlive: Bool
    var body: [UInt8] = []
    var isComplete = false
  }

  var requests: [Request] = []
  /// Why no more can be read.
  var fault: String?
  /// Bytes that have not come to anything yet.
  var pending = 0

  /// Everything but what the bytes lead to in the end: how bodies were cut does not matter.
  private mutating func append(_ bytes: ByteBuffer) {
    requests[requests.count - 1].body += bytes.readableBytesView
  }

  // MARK: weir's

  /// The scanner's reading of bytes that come in such pieces.
  init(scanning pieces: [[UInt8]], limits: HTTPLimits = HTTPLimits()) {
    var scanner = HTTP1Scanner(limits: limits)
    var unread = ByteBuffer()
    defer { pending = unread.readableBytes }
    do throws(HTTP1Scanner.Fault) {
      for piece in pieces {
        unread.writeBytes(piece)
        while let part = try scanner.next(&unread) {
          switch part {
          case .head(let head):
            // The server judges a target right behind the scanner.
            guard Self.isTarget(head) else { throw HTTP1Scanner.Fault.malformed("target") }
            requests.append(Request(head))
          case .body(let bytes): append(bytes)
          case .end: requests[requests.count - 1].isComplete = true
          }
          // The server drops what follows the last request of a connection.
          if requests.last?.isLast == true { return }
        }
      }
    } catch {
      fault = "\(error)"
    }
  }

  private static func isTarget(_ head: RequestHead) -> Bool {
    let text = String(buffer: head.target)
    guard !(head.method == .options && text == "*") else { return true }
    do throws(RequestTarget.Refusal) {
      _ = try RequestTarget(parsing: text)
      return true
    } catch {
      return error != .malformed
    }
  }

  // MARK: NIO's

  /// The decoder's reading, with the same limits.
  init(decoding bytes: [UInt8], limits: HTTPLimits = HTTPLimits()) {
    var configuration = NIOHTTPDecoderLimitConfiguration()
    configuration.maxHeaderFieldSize = limits.headerFieldBytes
    configuration.maxHeaderListSize = limits.headerBytes
    configuration.maxHeaderFieldCount = limits.headerCount
    let channel = EmbeddedChannel(
      handler: ByteToMessageHandler(
        HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: configuration)))
    defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
    do {
      try channel.writeInbound(ByteBuffer(bytes: bytes))
      try channel.throwIfErrorCaught()
    } catch {
      fault = "\(error)"
    }
    while let part = try? channel.readInbound(as: HTTPServerRequestPart.self) {
      switch part {
      case .head(let head): requests.append(Request(head))
      case .body(let bytes): append(bytes)
      case .end: requests[requests.count - 1].isComplete = true
      }
    }
    guard let last = requests.firstIndex(where: \.isLast) else { return }
    requests.removeSubrange((last + 1)...)
    fault = nil
  }

  // MARK: Compared

  /// What is wrong with the scanner's reading of these bytes; nil if nothing is. It must come to the same as NIO's,
  /// wherever the bytes are cut, or refuse what NIO takes for one of the reasons of `stricter`.
  static func objection(to bytes: [UInt8], cutAt cuts: (Int) -> Int) -> String? {
    let own = HTTP1Reading(scanning: [bytes])
    var pieces: [[UInt8]] = []
    var start = 0
    while start < bytes.count {
      let end = min(bytes.count, start + max(1, cuts(start)))
      pieces.append(Array(bytes[start..<end]))
      start = end
    }
    let dripped = HTTP1Reading(scanning: pieces)
    guard dripped.requests == own.requests, (dripped.fault == nil) == (own.fault == nil) else {
      return "in pieces it is \(dripped), in one \(own)"
    }
    let other = HTTP1Reading(decoding: bytes)
    for (index, request) in own.requests.enumerated() {
      guard index < other.requests.count else {
        return "request \(index) is \(request), NIO says \(other.fault ?? "nothing")"
      }
      var expected = other.requests[index]
      // NIO reads nothing behind a request that wants another protocol, not even its body; weir gives it none
      // (RFC 9110 §7.8) and goes on.
      if expected.wantsUpgrade { return nil }
      // "close" beats "keep-alive" (RFC 9112 §9.3).
      if !request.keepsAlive {
        expected.keepsAlive = false
        if expected.isComplete, request == expected { return nil }
      }
      if own.fault != nil, index == own.requests.count - 1 {
        // A body may have been refused in its midst.
        let count = min(request.body.count, expected.body.count)
        guard request.body.prefix(count) == expected.body.prefix(count) else { return "bodies differ" }
        expected.body = request.body
        expected.isComplete = request.isComplete
      }
      guard request == expected else { return "request \(index) is \(request), NIO says \(expected)" }
    }
    guard let fault = own.fault else {
      if let fault = other.fault {
        // NIO may know after a byte or two that a line will be none; the scanner knows when the line is there.
        return own.pending > 0 ? nil : "taken, though NIO says \(fault)"
      }
      return own.requests.count == other.requests.count ? nil : "it is \(own), NIO says \(other)"
    }
    guard other.fault == nil else { return nil }
    return stricter.contains { fault.contains($0) } ? nil : "refused for \(fault), though NIO takes it"
  }

  /// Where the scanner refuses what NIO's decoder takes, and why that is right.
  static let stricter = [
    // Methods of WebDAV and others, which no route answers; CONNECT is for proxies.
    "unknownMethod",
    // Only HTTP/1.1 and 1.0 exist.
    "unknownVersion",
    // More than one empty line before a request, or one that is not CR LF (RFC 9112 §2.2).
    "the request line has no method", "the request begins with a line end",
    // Bytes beyond ASCII and control characters in a target (RFC 3986 §2).
    "the request line has no target", "target",
    // More than one blank between the parts of a request line, a bare line feed behind it.
    "the request line ends badly",
    // A bare line feed or carriage return (RFC 9112 §2.2).
    "a field has a control character", "a line ends without a line feed", "a field has no proper name",
    // The same Content-Length twice, which RFC 9110 §8.6 lets a server refuse.
    "there are two Content-Length fields", "Content-Length is no number",
    // Codings other than chunked, which the server could not undo (RFC 9112 §6.1).
    "the only transfer coding is chunked", "HTTP/1.0 has no transfer codings", "the body has two lengths",
    // Chunks of 4 GiB and more; lines of chunks that are long, or not as RFC 9112 §7.1 writes them.
    "a chunk is too large", "a chunk has no size", "the line of a chunk", "a chunk is longer than it says",
    // Blanks around values count, and trailers like fields.
    "fieldsTooLarge", "targetTooLong",
  ]
}

extension HTTP1Reading.Request {
  fileprivate init(_ head: RequestHead) {
    self.init(
      method: "\(head.method)".uppercased(), target: String(buffer: head.target), version: "\(head.version)",
      fields: head.fields.all.map { "\($0.name): \($0.value)" }, keepsAlive: head.keepsAlive,
      isComplete: head.body == .none)
  }

  fileprivate init(_ head: HTTPRequestHead) {
    self.init(
      method: head.method.rawValue, target: head.uri, version: "\(head.version)",
      // NIO leaves blanks at the end of a value, which are no part of it (RFC 9110 §5.5).
      fields: head.headers.map { "\($0.name): \($0.value.trimmedEnd)" }, keepsAlive: head.isKeepAlive)
  }

  fileprivate var isLast: Bool { isComplete && !keepsAlive }

  fileprivate var wantsUpgrade: Bool {
    let names = fields.map { $0.lowercased() }
    return method == "CONNECT"
      || names.contains { $0.hasPrefix("upgrade:") }
        && names.contains { $0.hasPrefix("connection:") && $0.contains("upgrade") }
  }
}

extension String {
  fileprivate var trimmedEnd: String { String(reversed().drop { $0 == " " || $0 == "\t" }.reversed()) }
}
