import NIOCore
import NIOHPACK
import Testing

@testable import HTTP

/// Heads of requests that follow each other on a connection, against the same heads converted one by one.
@Suite struct HTTP2LastHeadTests {
  private static let limits = HTTPLimits()

  private func fields(_ path: String, _ more: [(String, String)] = [], method: String = "GET") -> HPACKHeaders {
    HPACKHeaders(
      [(":method", method), (":scheme", "https"), (":path", path), (":authority", "localhost")] + more)
  }

  private func text(_ head: RequestHead?) -> String {
    guard let head else { return "refused" }
    let fields = head.fields.all.map { "\($0.name): \($0.value)" }.joined(separator: ", ")
    return """
      \(head.method) \(String(buffer: head.target)) token \(head.token.map { String(buffer: $0) } ?? "-") hosts \(head.hosts) \
      body \(head.body) \(head.version) \(head.fields.acceptsGzip) \(head.fields.areConditional) \(fields)
      """
  }

  @Test func `each head is what its own fields say`() {
    let agent = [("user-agent", "player"), ("accept-encoding", "gzip")]
    let requests: [(HPACKHeaders, Bool)] = [
      (fields("/live/cam/1.m4s", agent), true), (fields("/live/cam/2.m4s", agent), true),
      (fields("/~abc/live/cam/3.m4s?a=b", agent), true), (fields("/live/cam/4.m4s", agent), true),
      (fields("/live/cam/4.m4s", [("user-agent", "plaver"), ("accept-encoding", "gzip")]), true),
      (fields("/live/cam/4.m4s", [("accept-encoding", "gzip"), ("user-agent", "player")]), true),
      (fields("/live/cam/4.m4s", [("user-agent", "player")]), true),
      (fields("/live/cam/4.m4s", agent + [("range", "bytes=0-1")]), true),
      (fields("/live/cam/4.m4s", agent), true), (fields("/live/cam/4.m4s", agent, method: "HEAD"), true),
      (fields("/live/cam/4.m4s", agent), true), (fields("/live/cam/ingest", agent, method: "POST"), false),
      (fields("/live/cam/ingest", agent, method: "POST"), true), (fields("/live/cam/5.m4s", agent), true),
    ]
    var last = HTTP2LastHead()
    for (fields, isComplete) in requests {
      let alone = HTTP2RequestHead.make(fields, isComplete: isComplete, limits: Self.limits)
      #expect(text(last.make(fields, isComplete: isComplete, limits: Self.limits)) == text(alone))
    }
  }

  /// It would be kept for as long as the connection idles.
  @Test func `a head with a long path is not kept`() {
    for (length, isKept) in [(10, true), (512, false), (511, true), (30_000, false)] {
      var last = HTTP2LastHead()
      _ = last.make(fields("/" + String(repeating: "x", count: length)), isComplete: true, limits: HTTPLimits())
      #expect((last.known != nil) == isKept, "a path of \(length) bytes")
    }
  }

  /// The path counts for the sum of all fields, also where the others are known.
  @Test func `a path that is too long is refused where the fields before it were good`() {
    var limits = HTTPLimits()
    limits.headerBytes = 200
    var last = HTTP2LastHead()
    for length in [10, 400, 20] {
      let one = fields("/" + String(repeating: "x", count: length))
      let expected = text(HTTP2RequestHead.make(one, isComplete: true, limits: limits))
      #expect((expected == "refused") == (length == 400))
      #expect(text(last.make(one, isComplete: true, limits: limits)) == expected)
    }
    // To the byte.
    for length in 145...160 {
      let one = fields("/" + String(repeating: "x", count: length))
      #expect(
        text(last.make(one, isComplete: true, limits: limits))
          == text(HTTP2RequestHead.make(one, isComplete: true, limits: limits)))
    }
  }
}
