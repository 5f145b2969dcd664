@testable import HTTP
import NIOCore
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTPLiveBodyTests {
  /// A body that the test writes.
  final class Feed: LiveBody {
    private let writers = Mutex<[LiveBodyWriter]>([])
    private let stops = Mutex(0)

    func start(_ writer: LiveBodyWriter) { writers.withLock { $0.append(writer) } }
    func stop() { stops.withLock { $0 += 1 } }

    var stopCount: Int { stops.withLock { $0 } }
    var writer: LiveBodyWriter? { writers.withLock { $0.last } }

    func write(_ pieces: [BodyPiece]) async throws {
      let writer = try #require(writer)
      try await writer.eventLoop.submit { writer.write(pieces) }.get()
    }
    func finish() async throws {
      let writer = try #require(writer)
      try await writer.eventLoop.submit { writer.finish() }.get()
    }
  }

  private func route(_ feed: Feed) -> HTTPTestServer.Route {
    HTTPTestServer.always(HTTPResponse(headers: [HeaderField("Content-Type", "video/mp4")], body: .live(feed)))
  }

  @Test(arguments: [
    [100, 900], [PlainSocket.sendfileThreshold, 1, 300_000], [2_000_000, 5, PlainSocket.sendfileThreshold - 1],
  ])
  func everyChunkArrivesAtOnceAndTheEndIsTold(sizes: [Int]) async throws {
    let total = sizes.reduce(0, +) * 2
    let file = try memoryFile(total)
    let feed = Feed()
    try await HTTPTestServer.run(route: route(feed)) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      var position = 0
      for size in sizes + sizes {
        let head = min(size, 40)
        try await feed.write([
          .bytes(ByteBuffer(bytes: patternBytes(position..<position + head))),
          .file(FileRange(file: file, offset: position + head, length: size - head)),
        ])
        position += size
        // The bytes of a chunk are there before the next chunk or the end is written.
        let last = patternBytes(position - min(size, 50)..<position)
        try await client.wait("chunk of \(size)") { $0.received.suffix(last.count).elementsEqual(last) }
      }
      try await feed.finish()
      let response = try await client.response()
      #expect(response["Transfer-Encoding"] == "chunked")
      #expect(response["Content-Length"] == nil)
      #expect(response.body == patternBytes(0..<total))
      #expect(feed.stopCount == 0)
      // The connection goes on after the end.
      #expect(try await client.get("/", method: "HEAD").status == 200)
      await client.close()
    }
  }

  @Test func anHTTP10ClientReadsUntilTheConnectionCloses() async throws {
    let feed = Feed()
    try await HTTPTestServer.run(route: route(feed)) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      try await feed.write([.bytes(ByteBuffer(string: "abc"))])
      try await feed.write([.bytes(ByteBuffer(string: "def"))])
      try await feed.finish()
      let response = try await client.response()
      #expect(response["Connection"] == "close")
      #expect(response["Transfer-Encoding"] == nil)
      #expect(response.text == "abcdef")
    }
  }

  @Test func aViewerThatLeavesStopsTheBodyOnce() async throws {
    let feed = Feed()
    try await HTTPTestServer.run(route: route(feed)) { address, listener in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      try await feed.write([.bytes(ByteBuffer(string: "abc"))])
      await client.close()
      try await client.wait("the body was not stopped") { _ in feed.stopCount == 1 && listener.connections == 0 }
      // What is written without a reader is dropped.
      try await feed.write([.bytes(ByteBuffer(string: "def"))])
      try await feed.finish()
      #expect(feed.stopCount == 1)
    }
  }

  @Test func aViewerThatFallsTooFarBehindIsCut() async throws {
    var limits = HTTPLimits()
    limits.liveBacklogBytes = 1 << 20
    let file = try memoryFile(1 << 20)
    let feed = Feed()
    try await HTTPTestServer.run(limits: limits, route: route(feed)) { address, listener in
      let client = try await HTTPRawClient.connect(to: address, receiveBuffer: 8192, reads: false)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      for _ in 0..<64 where feed.stopCount == 0 {
        try await feed.write([.file(FileRange(file: file, offset: 0, length: 1 << 20))])
      }
      #expect(feed.stopCount == 1)
      try await client.wait("the viewer was not cut") { _ in listener.connections == 0 }
      await client.close()
    }
  }

  /// Who takes it has two ticks of real time for seven times what may wait: that is less than what the system's buffers hold, which
  /// who does not take it must exceed.
  @Test(arguments: [(true, 1 << 18), (false, 1 << 20)])
  func aBurstThatIsTakenSoonCutsNoViewerAndOneThatIsNotDoes(reads: Bool, backlog: Int) async throws {
    var limits = HTTPLimits()
    limits.liveBacklogBytes = backlog
    let file = try memoryFile(backlog)
    let feed = Feed()
    try await HTTPTestServer.run(limits: limits, route: route(feed)) { address, listener in
      let client = try await HTTPRawClient.connect(to: address, receiveBuffer: reads ? 1 << 18 : 8192, reads: reads)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      for _ in 0..<7 { try await feed.write([.file(FileRange(file: file, offset: 0, length: backlog))]) }
      if reads {
        try await client.wait("the burst was not taken") { $0.received.count > 7 * backlog }
        try await Task.sleep(for: .seconds(3))
        #expect(feed.stopCount == 0)
      } else {
        try await client.wait("the viewer was not cut") { _ in feed.stopCount == 1 && listener.connections == 0 }
      }
      await client.close()
    }
  }

  @Test func aViewerThatTakesNothingForTooLongIsCut() async throws {
    var limits = HTTPLimits()
    limits.liveStall = .milliseconds(300)
    limits.liveBacklogBytes = 1 << 30
    let file = try memoryFile(1 << 20)
    let feed = Feed()
    try await HTTPTestServer.run(limits: limits, route: route(feed)) { address, listener in
      let client = try await HTTPRawClient.connect(to: address, receiveBuffer: 8192, reads: false)
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
      try await client.wait("the body did not start") { _ in feed.writer != nil }
      for _ in 0..<16 where feed.stopCount == 0 {
        try await feed.write([.file(FileRange(file: file, offset: 0, length: 1 << 20))])
      }
      try await client.wait("the viewer was not cut", for: .seconds(30)) { _ in feed.stopCount == 1 }
      await client.close()
    }
  }
}
