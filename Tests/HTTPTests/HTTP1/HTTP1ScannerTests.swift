@testable import HTTP
import NIOCore
import NIOHTTP1
import Testing

@Suite struct HTTP1ScannerTests {
  private func read(_ text: String, limits: HTTPLimits = HTTPLimits()) -> HTTP1Reading {
    let bytes = Array(text.utf8)
    let whole = HTTP1Reading(scanning: [bytes], limits: limits)
    let dripped = HTTP1Reading(scanning: bytes.map { [$0] }, limits: limits)
    #expect(whole.requests == dripped.requests, "byte by byte it is the same")
    #expect((whole.fault == nil) == (dripped.fault == nil))
    return whole
  }

  @Test func aRequestIsItsLineAndItsFieldsAsTheyStand() {
    let reading = read("GET /a?b=c HTTP/1.1\r\nHost: x:80\r\nX-Y:\t z z \t\r\nEmpty:\r\n\r\n")
    #expect(reading.fault == nil)
    #expect(
      reading.requests == [
        .init(
          method: "GET", target: "/a?b=c", version: "HTTP/1.1", fields: ["Host: x:80", "X-Y: z z", "Empty: "],
          keepsAlive: true, isComplete: true)
      ])
  }

  @Test func pipelinedRequestsAreFoundInOrderBodiesAndAll() {
    let reading = read(
      "POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
        + "PUT /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n2;a=\"b\"\r\nde\r\nA\r\n0123456789\r\n00\r\nT: x\r\n\r\n"
        + "\r\nGET /3 HTTP/1.0\r\nConnection: keep-alive\r\n\r\nHEAD /4 HTTP/1.1\r\nContent-Length: 0\r\nConnection: x , Close\r\n\r\nGET /5"
    )
    #expect(reading.fault == nil)
    #expect(reading.requests.map(\.target) == ["/1", "/2", "/3", "/4"])
    #expect(reading.requests.map { String(decoding: $0.body, as: UTF8.self) } == ["abc", "de0123456789", "", ""])
    #expect(reading.requests.map(\.keepsAlive) == [true, true, true, false])
    #expect(reading.requests.map(\.isComplete) == [true, true, true, true])
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: x\r\n folded\r\n\r\n", "proper name"),
    ("GET / HTTP/1.1\r\n Host: x\r\n\r\n", "proper name"), ("GET / HTTP/1.1\r\nHost : x\r\n\r\n", "proper name"),
    ("GET / HTTP/1.1\r\n: x\r\n\r\n", "proper name"), ("GET / HTTP/1.1\r\nHost\r\n\r\n", "proper name"),
    ("GET / HTTP/1.1\r\nHost: x\n\r\n", "control character"), ("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "line feed"),
    ("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", "control character"), ("GET / HTTP/1.1\nHost: x\r\n\r\n", "ends badly"),
    ("GET  / HTTP/1.1\r\n\r\n", "no target"), ("GET /  HTTP/1.1\r\n\r\n", "ends badly"),
    ("GET /\r\n\r\n", "no target"), ("\n", "no method"), ("\r\n\r\n", "no method"), ("\rGET", "line end"),
    ("\u{16}\u{3}", "no method"), ("get / HTTP/1.1\r\n\r\n", "unknownMethod"),
    ("GET / HTTP/1.2\r\n\r\n", "unknownVersion"),
    ("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n", "two Content-Length"),
    ("POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n", "no number"),
    ("POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n", "no number"),
    ("POST / HTTP/1.1\r\nContent-Length: 9999999999999999999\r\n\r\n", "no number"),
    ("POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", "two lengths"),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n", "two lengths"),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "chunked"),
    ("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", "chunked"),
    ("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.0"),
  ])
  func whatIsAgainstTheGrammarIsRefused(text: String, reason: String) throws {
    let fault = try #require(read(text).fault)
    #expect(fault.contains(reason))
  }

  @Test(arguments: [
    "x\r\n", "\r\n", " 1\r\n", "1 \r\n", "1\n", "1\r\nab", "1\r\na\n", "123456789\r\n", "-1\r\n", "0x1\r\n",
    "1;\u{1}\r\n",
    "1;" + String(repeating: "x", count: 300), "0\r\n x\r\n", "0\r\na b: c\r\n\r\n", "0\r\n\n",
  ])
  func chunksThatAreNotAsTheyShouldBeAreRefused(chunks: String) {
    let reading = read("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    #expect(reading.fault != nil)
    #expect(reading.requests.count == 1 && !reading.requests[0].isComplete)
  }

  @Test func limitsHoldForWhatIsNotCompleteToo() {
    var limits = HTTPLimits()
    (limits.targetBytes, limits.headerFieldBytes, limits.headerBytes, limits.headerCount) = (100, 60, 200, 4)
    let head = "GET / HTTP/1.1\r\n"
    let long = { (count: Int) in String(repeating: "a", count: count) }
    #expect(read("GET /\(long(99)) HTTP/1.1\r\n\r\n", limits: limits).fault == nil)
    #expect(read("GET /\(long(100))", limits: limits).fault == "targetTooLong(101)")
    #expect(read(head + "A: \(long(57))\r\n\r\n", limits: limits).fault == nil)
    #expect(read(head + "A: \(long(58))\r\n\r\n", limits: limits).fault == "fieldsTooLarge")
    #expect(read(head + "A:\(String(repeating: " ", count: 70))", limits: limits).fault == "fieldsTooLarge")
    #expect(read(head + String(repeating: "A: \(long(46))\r\n", count: 4), limits: limits).fault == nil)
    #expect(read(head + String(repeating: "A: \(long(47))\r\n", count: 4), limits: limits).fault == "fieldsTooLarge")
    #expect(read(head + String(repeating: "A: b\r\n", count: 4) + "\r\n", limits: limits).fault == nil)
    #expect(read(head + String(repeating: "A: b\r\n", count: 5), limits: limits).fault == "fieldsTooLarge")
    #expect(
      read(
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + String(repeating: "A: b\r\n", count: 5),
        limits: limits
      ).fault == "fieldsTooLarge")
  }

  @Test func fieldsAreFoundInWhateverCaseAndTheFirstOfThemCounts() throws {
    var scanner = HTTP1Scanner(limits: HTTPLimits())
    var bytes = ByteBuffer(
      string: "GET / HTTP/1.1\r\nhOsT: x\r\nRANGE: bytes=0-\r\nx-a: 1\r\nrange: bytes=1-\r\nX-A: \t2\r\n"
        + "Accept-Encoding: gzip, br\r\nUser-Agent: a\r\n\r\n")
    guard case .head(let head)? = try scanner.next(&bytes) else {
      Issue.record("no head")
      return
    }
    #expect(head.fields.first("Range") == "bytes=0-")
    #expect(head.fields.all("X-a") == ["1", "2"])
    #expect(head.fields.first("If-Range") == nil && head.fields.first("x") == nil)
    #expect(head.fields.areConditional && head.fields.acceptsGzip && head.hosts == 1)
    #expect(head.fields.clientHash == RequestFields.list(["User-Agent": "a"]).clientHash)
    #expect(head.fields.clientHash != RequestFields.list(["User-Agent": "b"]).clientHash)
  }

  @Test func textEndsAtTheFirstControlCharacterWhereverItStands() {
    for length in 0..<40 {
      for place in 0..<length {
        for byte in [0, 0x0D, 0x1F, 0x7F, 0x09, 0x20, 0x7E, 0x80, 0xFF] as [UInt8] {
          var bytes = [UInt8](repeating: 0x61, count: length)
          bytes[place] = byte
          let isControl = byte < 0x20 && byte != 0x09 || byte == 0x7F
          for start in 0...length {
            let expected = isControl && place >= start ? place : length
            #expect(bytes.span.endOfText(from: start) == expected)
          }
        }
      }
    }
  }
}
