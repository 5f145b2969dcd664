@testable import HTTP
import NIOCore
import NIOHTTP1
import NIOPosix
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTPDeliveryTests {
  /// Fragments of `media` bytes of a file behind heads of `head` bytes in memory; all of it is the pattern.
  private func fragments(_ file: SharedFile, head: Int, media: Int, total: Int) -> [BodyPiece] {
    var pieces: [BodyPiece] = []
    var position = 0
    while position < total {
      let headEnd = min(position + head, total)
      pieces.append(.bytes(ByteBuffer(bytes: patternBytes(position..<headEnd))))
      let mediaEnd = min(headEnd + media, total)
      pieces.append(.file(FileRange(file: file, offset: headEnd, length: mediaEnd - headEnd)))
      position = mediaEnd
    }
    return pieces
  }

  @Test(arguments: [
    (1, 1), (700, 3000), (1000, PlainSocket.sendfileThreshold - 1), (1000, PlainSocket.sendfileThreshold),
    (PlainSocket.sendfileThreshold, 100), (100, PlainSocket.sendfileThreshold + 1), (50, 3 << 20),
  ])
  func everyByteOfMemoryFilesArrivesWhateverTheSizeOfThePieces(head: Int, media: Int) async throws {
    let total = head == 1 ? 5000 : 3_000_000
    try await checkBody(fragments(try memoryFile(total), head: head, media: media, total: total), total: total)
  }

  @Test(arguments: [100, SocketWriter.diskChunk, SocketWriter.diskChunk + 1, 3_000_000])
  func everyByteOfAFileOnDiskArrives(total: Int) async throws {
    try await checkBody(fragments(try diskFile(total), head: 40, media: 1_000_000, total: total), total: total)
  }

  private func checkBody(_ pieces: [BodyPiece], total: Int) async throws {
    let route = HTTPTestServer.always(.media(pieces, type: .mp4, cache: .immutable))
    try await HTTPTestServer.run(route: route) { address, _ in
      // A small receive buffer makes the server wait for the socket many times.
      for buffer in [nil, Int32(65536)] {
        let client = try await HTTPRawClient.connect(to: address, receiveBuffer: buffer)
        for _ in 0..<2 {
          let response = try await client.get("/", "Accept-Encoding: gzip")
          #expect(response["Content-Length"] == String(total))
          #expect(response["Content-Encoding"] == nil)
          #expect(response["Cache-Control"] == "public, max-age=31536000, immutable")
          #expect(response.body == patternBytes(0..<total))
        }
        await client.close()
      }
    }
  }

  @Test func rangesAreAnsweredByThoseBytesAlone() async throws {
    let file = try memoryFile(10_000)
    let route = HTTPTestServer.always(
      .media(
        fragments(file, head: 100, media: 900, total: 10_000), type: .mp4, cache: .immutable, entityTag: "\"tag\""))
    try await HTTPTestServer.run(route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      for range in [0..<1, 0..<10_000, 99..<101, 999..<1001, 9_999..<10_000] {
        let response = try await client.get("/", "Range: bytes=\(range.lowerBound)-\(range.upperBound - 1)")
        #expect(response.status == 206)
        #expect(response["Content-Range"] == "bytes \(range.lowerBound)-\(range.upperBound - 1)/10000")
        #expect(response["Content-Length"] == String(range.count))
        #expect(response["ETag"] == "\"tag\"")
        #expect(response.body == patternBytes(range))
      }
      let beyond = try await client.get("/", "Range: bytes=10000-")
      #expect(beyond.status == 416)
      #expect(beyond["Content-Range"] == "bytes */10000")
      #expect(beyond.body.isEmpty)
      let many = try await client.get("/", "Range: bytes=0-1,5-6")
      #expect(many.status == 200)
      #expect(many["Accept-Ranges"] == "bytes")
      #expect(many.body.count == 10_000)
      #expect(try await client.get("/", "Range: bytes=0-1", "If-Range: \"tag\"").status == 206)
      #expect(try await client.get("/", "Range: bytes=0-1", "If-Range: \"other\"").status == 200)
      let unchanged = try await client.get("/", "If-None-Match: \"x\", \"tag\"")
      #expect(unchanged.status == 304)
      #expect(unchanged["ETag"] == "\"tag\"")
      await client.close()
    }
  }

  @Test func cachedTextIsCompressedForThoseWhoAcceptIt() async throws {
    let text = (0..<400).map { "#EXTINF:2.0,\n\($0).m4s\n" }.joined()
    let cached = PreencodedResponse(type: .hls, cache: .livePlaylist, body: ByteBuffer(string: text))
    try await HTTPTestServer.run(route: HTTPTestServer.always(HTTPResponse(cached))) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      let plain = try await client.get("/")
      #expect(plain.text == text)
      #expect(plain["Vary"] == "Accept-Encoding")
      #expect(plain["Content-Encoding"] == nil)
      let packed = try await client.get("/", "Accept-Encoding: br, gzip")
      #expect(packed["Content-Encoding"] == "gzip")
      #expect(packed["Vary"] == "Accept-Encoding")
      #expect(packed["ETag"] != plain["ETag"])
      #expect(packed.body.count < plain.body.count / 3)
      #expect(try gunzip(packed.body) == Array(text.utf8))
      for tag in [plain["ETag"], packed["ETag"]] {
        #expect(try await client.get("/", "If-None-Match: \(try #require(tag))").status == 304)
      }
      #expect(try await client.get("/").text == text)
      await client.close()
    }
  }

  @Test func theDateOfACachedResponseGoesOn() async throws {
    let cached = PreencodedResponse(type: .text, cache: .never, body: ByteBuffer(string: "x"))
    let first = cached.encoded(acceptsGzip: false, date: HTTPDate(second: 784_111_777))
    let second = cached.encoded(acceptsGzip: false, date: HTTPDate(second: 784_111_778))
    #expect(String(buffer: first.bytes).contains("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n"))
    #expect(String(buffer: second.bytes).contains("Date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"))
  }

  @Test(arguments: [(200_000, true), (20_000, false)])
  func aLongCachedBodyIsCopiedForNoClient(length: Int, keepsAlive: Bool) throws {
    let cached = PreencodedResponse(type: .hls, cache: .never, body: ByteBuffer(repeating: 0x78, count: length))
    let response = HTTP1Response(
      .cached(cached, acceptsGzip: false, sendsBody: true), version: .http1_1, keepsAlive: keepsAlive,
      date: HTTPDate(second: 5))
    guard case .pieces(let head, let pieces) = response.content, case .bytes(let body)? = pieces.first else {
      Issue.record("it is copied")
      return
    }
    #expect(body == cached.body && pieces.count == 1 && response.keepsAlive == keepsAlive)
    #expect(String(buffer: head).contains("Content-Length: \(length)\r\n"))
    #expect(String(buffer: head).contains("Connection: close") != keepsAlive)
  }

  @Test func aReaderThatStopsReadingIsCut() async throws {
    var limits = HTTPLimits()
    limits.writeStall = .milliseconds(300)
    let file = try memoryFile(16 << 20)
    let route: HTTPTestServer.Route = { request, _ in
      .now(
        request.path.isEmpty
          ? .text("x", cache: .never)
          : .media([.file(FileRange(file: file, offset: 0, length: 16 << 20))], type: .mp4, cache: .immutable))
    }
    try await HTTPTestServer.run(limits: limits, route: route) { address, listener in
      let client = try await HTTPRawClient.connect(to: address, receiveBuffer: 8192)
      #expect(try await client.get("/").text == "x")
      try await client.stopReading()
      try await client.send("GET /media HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the reader was not cut", for: .seconds(30)) { _ in listener.connections == 0 }
      await client.close()
    }
  }

  @Test func aReaderOfWhatIsCalledInIsCut() async throws {
    let leftovers = LeftoverBudget(limit: 8 << 20)
    let old = try memoryFile(8 << 20, leftovers: leftovers)
    let route = HTTPTestServer.always(
      .media([.file(FileRange(file: old, offset: 0, length: 8 << 20))], type: .mp4, cache: .immutable))
    try await HTTPTestServer.run(route: route) { address, listener in
      let clients = [
        try await HTTPRawClient.connect(to: address, receiveBuffer: 8192, reads: false),
        try await HTTPRawClient.connect(to: address, receiveBuffer: 8192, reads: false),
      ]
      try await clients[0].send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await clients[1].send("GET / HTTP/1.1\r\nHost: x\r\nRange: bytes=-7000000\r\n\r\n")
      try await Task.sleep(for: .milliseconds(300))
      #expect(listener.connections == 2)
      let new = try memoryFile(1 << 20, leftovers: leftovers)
      try await clients[0].wait("the readers were not cut") { _ in listener.connections == 0 }
      #expect(old.isCalledIn && !new.isCalledIn && leftovers.bytes == 1 << 20)
      for client in clients { await client.close() }
    }
  }

  @Test func aSlowReaderThatGoesOnReadingGetsEverything() async throws {
    var limits = HTTPLimits()
    limits.writeStall = .seconds(3)
    let file = try memoryFile(4 << 20)
    let route = HTTPTestServer.always(
      .media([.file(FileRange(file: file, offset: 0, length: 4 << 20))], type: .mp4, cache: .immutable))
    try await HTTPTestServer.run(limits: limits, route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address, receiveBuffer: 32768, reads: false)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      let start = ContinuousClock.now
      while ContinuousClock.now - start < .milliseconds(4500) {
        try client.readOnce()
        try await Task.sleep(for: .milliseconds(10))
      }
      #expect(!client.isClosed)
      try await client.startReading()
      #expect(try await client.response().body == patternBytes(0..<4 << 20))
      await client.close()
    }
  }
}

/// The bytes that a gzip member holds, by the system's gzip.
func gunzip(_ bytes: [UInt8]) throws -> [UInt8] {
  try runTool(["/bin/gzip", "-dc"], input: bytes)
}
