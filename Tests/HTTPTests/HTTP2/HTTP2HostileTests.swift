@testable import HTTP
import NIOCore
import NIOHTTP2
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTP2HostileTests {
  private func run(
    limits: HTTPLimits = HTTPLimits(), window: Int = 65535,
    route: @escaping HTTPTestServer.Route = HTTPTestServer.defaultRoute,
    _ body: (_ client: HTTP2TestClient, _ other: HTTP2TestClient, _ listener: HTTPListener) async throws -> Void
  ) async throws {
    let (server, client) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(limits: limits, tls: server, route: route) { address, listener in
      let connection = try await HTTP2TestClient.connect(to: address, tls: client, window: window)
      let other = try await HTTP2TestClient.connect(to: address, tls: client)
      #expect(try await other.get("/").status == 200)
      try await body(connection, other, listener)
      await connection.close()
      await other.close()
    }
  }

  private func mediaRoute(_ total: Int) throws -> HTTPTestServer.Route {
    let file = try memoryFile(total)
    return { request, _ in
      .now(
        request.path.isEmpty
          ? .text("x", cache: .never)
          : .media([.file(FileRange(file: file, offset: 0, length: total))], type: .mp4, cache: .immutable))
    }
  }

  @Test func aStreamWhoseWindowStaysClosedIsCutAndHoldsUpNoOther() async throws {
    var limits = HTTPLimits()
    limits.writeStall = .milliseconds(2000)
    try await run(limits: limits, window: 1000, route: try mediaRoute(1 << 20)) { client, _, _ in
      let stalled = try await client.request("/media")
      let reading = try await client.request("/media")
      try await client.open(reading)
      #expect(try await client.response(reading).body == patternBytes(0..<(1 << 20)))
      #expect(!client[stalled].isOver)
      try await client.wait("the stalled stream is cut") { $0.streams[stalled]?.reset == .cancel }
      #expect(client[stalled].body.count == 1000)
      #expect(try await client.get("/").text == "x")
    }
  }

  @Test func aStreamOfWhatIsCalledInIsCutAndTheConnectionGoesOn() async throws {
    let leftovers = LeftoverBudget(limit: 1 << 20)
    let old = try memoryFile(1 << 20, leftovers: leftovers)
    let route: HTTPTestServer.Route = { request, _ in
      .now(
        request.path.isEmpty
          ? .text("x", cache: .never)
          : .media([.file(FileRange(file: old, offset: 0, length: 1 << 20))], type: .mp4, cache: .immutable))
    }
    try await run(limits: HTTPLimits(), window: 1000, route: route) { client, _, _ in
      let id = try await client.request("/media")
      #expect(try await client.get("/").text == "x")
      #expect(client[id].reset == nil)
      let new = try memoryFile(1000, leftovers: leftovers)
      try await client.wait("the stream is cut") { $0.streams[id]?.reset == .cancel }
      #expect(try await client.get("/").text == "x")
      #expect(!new.isCalledIn)
    }
  }

  @Test func aTrickleOfWindowsIsNoReading() async throws {
    var limits = HTTPLimits()
    limits.writeStall = .milliseconds(600)
    try await run(limits: limits, window: 0, route: try mediaRoute(1 << 20)) { client, _, _ in
      let id = try await client.request("/media")
      var count = 0
      while client[id].reset == nil, count < 2000 {
        try? await client.open(id, by: 1)
        try await Task.sleep(for: .milliseconds(10))
        count += 1
      }
      #expect(client[id].reset == .cancel)
      #expect(client[id].body.count < 1000)
    }
  }

  @Test func aClosedConnectionWindowCutsWhoWaitsForIt() async throws {
    var limits = HTTPLimits()
    limits.writeStall = .milliseconds(600)
    try await run(limits: limits, window: 1 << 20, route: try mediaRoute(1 << 20)) { client, _, _ in
      let ids = [try await client.request("/media"), try await client.request("/media")]
      for id in ids { try await client.wait("the stream is cut") { $0.streams[id]?.reset == .cancel } }
      #expect(client[ids[0]].body.count + client[ids[1]].body.count == 65535)
      try await client.open()
      #expect(try await client.get("/").text == "x")
    }
  }

  @Test func aLiveViewerThatDoesNotFollowIsCutByItsBacklog() async throws {
    final class Flood: LiveBody {
      let isStopped = Mutex(false)
      func start(_ writer: LiveBodyWriter) {
        for _ in 0..<100 { writer.write([.bytes(ByteBuffer(repeating: 0, count: 10_000))]) }
      }
      func stop() { isStopped.withLock { $0 = true } }
    }
    let flood = Flood()
    var limits = HTTPLimits()
    limits.liveBacklogBytes = 100_000
    try await run(
      limits: limits,
      route: { request, _ in
        .now(request.path.isEmpty ? .text("x", cache: .never) : HTTPResponse(body: .live(flood)))
      }
    ) { client, _, _ in
      let id = try await client.request("/live")
      #expect(try await client.response(id).reset == .cancel)
      #expect(flood.isStopped.withLock { $0 })
      #expect(try await client.get("/").text == "x")
    }
  }

  @Test func aFloodOfResetsEndsItsConnectionAndNoOther() async throws {
    try await run { client, other, _ in
      for _ in 0..<400 where !client.now.isClosed {
        guard let id = try? await client.request("/") else { break }
        try? await client.reset(id)
      }
      try await client.wait("the flood is ended") { $0.isClosed }
      #expect(try await other.get("/").status == 200)
    }
  }

  @Test func aFloodOfPingsEndsItsConnection() async throws {
    try await run { client, other, _ in
      for _ in 0..<400 where !client.now.isClosed {
        try? await client.send(.ping(HTTP2PingData(withInteger: 1), ack: false))
      }
      try await client.wait("the flood is ended") { $0.isClosed }
      #expect(try await other.get("/").status == 200)
    }
  }

  @Test func moreStreamsThanAllowedAreRefusedAndTheOthersGoOn() async throws {
    var limits = HTTPLimits()
    limits.streams = 3
    let waiting = Mutex<[EventLoopPromise<HTTPResponse>]>([])
    try await run(
      limits: limits,
      route: { request, loop in
        guard request.path.first == "later" else { return .now(.text("x", cache: .never)) }
        let promise = loop.makePromise(of: HTTPResponse.self)
        waiting.withLock { $0.append(promise) }
        return .later(promise.futureResult)
      }
    ) { client, _, _ in
      #expect(try await client.get("/").text == "x", "the settings are here")
      var ids: [HTTP2StreamID] = []
      for _ in 0..<3 { ids.append(try await client.request("/later")) }
      // NIO's client keeps the fourth back by itself: it leaves when another stream ends.
      try await client.wait("three wait") { _ in waiting.withLock { $0.count } == 3 }
      for promise in waiting.withLock({ $0 }) { promise.succeed(.text("y", cache: .never)) }
      for id in ids { #expect(try await client.response(id).text == "y") }
    }
  }

  // MARK: clients that send before they have read what is allowed

  /// A client that was told nothing yet, whose requests for /later wait until `release` is called.
  private func runEager(
    limits: HTTPLimits = HTTPLimits(),
    _ body: (_ client: HTTPRawClient, _ release: () -> Void) async throws -> Void
  ) async throws {
    let waiting = Mutex<[EventLoopPromise<HTTPResponse>]>([])
    func release() {
      let promises = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for promise in promises { promise.succeed(.text("late", cache: .never)) }
    }
    let (server, context) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(
      limits: limits, tls: server,
      route: { request, loop in
        guard request.path.first == "later" else { return .now(.text("x", cache: .never)) }
        let promise = loop.makePromise(of: HTTPResponse.self)
        waiting.withLock { $0.append(promise) }
        return .later(promise.futureResult)
      }
    ) { address, _ in
      let client = try await HTTPRawClient.connect(to: address, tls: context)
      try await body(client, release)
      release()
      await client.close()
    }
  }

  /// The streams of so many requests.
  private func numbers(_ count: Int) -> [UInt32] { (0..<UInt32(count)).map { 2 * $0 + 1 } }

  @Test func streamsTooManyOfAPeerThatHasReadNothingAreRefusedEachByItself() async throws {
    try await runEager { client, release in
      let ids = numbers(150)
      var bytes = HTTP2Bytes.preface
      for id in ids { bytes += HTTP2Bytes.request("/later", stream: id) }
      try await client.send(bytes)
      try await client.wait("the last is refused") { HTTP2Bytes.resets($0.received)[299] != nil }
      #expect(HTTP2Bytes.frames(client.received).first?.payload.prefix(6) == [0, 3, 0, 0, 0, 100])
      #expect(HTTP2Bytes.resets(client.received) == Dictionary(uniqueKeysWithValues: ids[100...].map { ($0, 7) }))
      release()
      try await client.wait("the others are answered") { HTTP2Bytes.answered($0.received) == Set(ids[..<100]) }
      try await client.send(HTTP2Bytes.acknowledgement + HTTP2Bytes.request("/", stream: 301))
      try await client.wait("the connection goes on") { HTTP2Bytes.answered($0.received).contains(301) }
      #expect(HTTP2Bytes.goAways(client.received).isEmpty)
    }
  }

  @Test func whatFollowsARefusedRequestIsIgnored() async throws {
    try await runEager { client, _ in
      let ids = numbers(150)
      var bytes = HTTP2Bytes.preface
      for id in ids { bytes += HTTP2Bytes.request("/later", stream: id, isEnd: false) }
      for id in ids { bytes += http2Frame(0, stream: id, [1]) }
      for id in ids { bytes += http2Frame(3, stream: id, [0, 0, 0, 8]) }
      try await client.send(bytes)
      try await client.wait("the last is refused") { HTTP2Bytes.resets($0.received)[299] != nil }
      #expect(Set(HTTP2Bytes.resets(client.received).filter { $0.value == 7 }.keys) == Set(ids[100...]))
      try await client.send(HTTP2Bytes.acknowledgement + HTTP2Bytes.request("/", stream: 301))
      try await client.wait("the connection goes on") { HTTP2Bytes.answered($0.received).contains(301) }
      #expect(HTTP2Bytes.goAways(client.received).isEmpty)
    }
  }

  @Test func aPeerThatHasAcknowledgedIsRefusedOnlyWhatIsTooMuchAsWell() async throws {
    var limits = HTTPLimits()
    limits.streams = 3
    try await runEager(limits: limits) { client, release in
      try await client.send(HTTP2Bytes.preface)
      try await client.wait("the settings are here") { !HTTP2Bytes.frames($0.received).isEmpty }
      try await client.send(HTTP2Bytes.acknowledgement)
      for id in numbers(4) { try await client.send(HTTP2Bytes.request("/later", stream: id)) }
      try await client.wait("the fourth is refused") { HTTP2Bytes.resets($0.received) == [7: 7] }
      release()
      try await client.wait("three are answered") { HTTP2Bytes.answered($0.received) == [1, 3, 5] }
      try await client.send(HTTP2Bytes.request("/", stream: 9))
      try await client.wait("there is room again") { HTTP2Bytes.answered($0.received).contains(9) }
    }
  }

  @Test func aFloodOfStreamsTooManyEndsItsConnection() async throws {
    var limits = HTTPLimits()
    limits.streams = 3
    limits.refusedStreams = 20
    try await runEager(limits: limits) { client, _ in
      var bytes = HTTP2Bytes.preface
      for id in numbers(3 + 20) { bytes += HTTP2Bytes.request("/later", stream: id) }
      try await client.send(bytes)
      try await client.wait("twenty are refused") { HTTP2Bytes.resets($0.received).count == 20 }
      #expect(HTTP2Bytes.goAways(client.received).isEmpty)
      // Three seconds forgive one.
      bytes = []
      for id in numbers(43)[23...] { bytes += HTTP2Bytes.request("/later", stream: id) }
      try? await client.send(bytes)
      try await client.waitForClose()
      #expect(HTTP2Bytes.goAways(client.received) == [11], "ENHANCE_YOUR_CALM")
    }
  }

  @Test func acknowledgingTwiceIsAFault() async throws {
    try await runEager { client, _ in
      try await client.send(HTTP2Bytes.preface + HTTP2Bytes.acknowledgement + HTTP2Bytes.acknowledgement)
      try await client.waitForClose()
      #expect(HTTP2Bytes.goAways(client.received).contains { $0 != 0 })
    }
  }

  @Test func silenceBeforeWithinAndAfterARequestEndsTheConnection() async throws {
    var limits = HTTPLimits()
    limits.headerTime = .milliseconds(1000)
    limits.idleTime = .milliseconds(1500)
    limits.bodyTime = .milliseconds(500)
    try await run(limits: limits) { silent, idle, listener in
      try await silent.wait("a connection without a request is closed") { $0.isClosed }
      try await idle.wait("an idle connection is closed") { $0.isClosed }
      #expect(idle.now.goAways.map(\.code) == [.noError])
      #expect(idle.now.goAways.first?.last == 1, "the client knows what was answered")
      while listener.connections > 0 { try await Task.sleep(for: .milliseconds(5)) }
    }
    limits.idleTime = .seconds(60)
    try await run(limits: limits) { client, _, _ in
      let id = try await client.request("/", method: "POST", isEnd: false)
      #expect(try await client.response(id).reset == .cancel, "a body that does not come")
      #expect(try await client.get("/").status == 200)
    }
  }

  @Test func aServerThatStopsLetsStreamsEnd() async throws {
    let waiting = Mutex<[EventLoopPromise<HTTPResponse>]>([])
    var limits = HTTPLimits()
    limits.stopTime = .seconds(20)
    try await run(
      limits: limits,
      route: { request, loop in
        guard request.path.first == "later" else { return .now(.text("x", cache: .never)) }
        let promise = loop.makePromise(of: HTTPResponse.self)
        waiting.withLock { $0.append(promise) }
        return .later(promise.futureResult)
      }
    ) { client, other, listener in
      let id = try await client.request("/later")
      try await client.wait("the route thinks") { _ in !waiting.withLock { $0.isEmpty } }
      async let stopped: Void = listener.stop()
      try await other.wait("an idle connection is closed at once") { $0.isClosed }
      try await client.wait("the peer is told") { $0.goAways.count == 2 }
      #expect(client.now.goAways.map(\.last) == [.maxID, id])
      for promise in waiting.withLock({ $0 }) { promise.succeed(.text("the last word", cache: .never)) }
      #expect(try await client.response(id).text == "the last word")
      try await client.wait("then the connection ends") { $0.isClosed }
      await stopped
    }
  }

  @Test func aFullServerSaysSoAndCloses() async throws {
    var limits = HTTPLimits()
    limits.connections = 1
    let (server, context) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(limits: limits, tls: server) { address, listener in
      let first = try await HTTP2TestClient.connect(to: address, tls: context)
      #expect(try await first.get("/").status == 200)
      let second = try await HTTP2TestClient.connect(to: address, tls: context)
      let answer = try await second.get("/")
      #expect(answer.status == 503)
      #expect(answer["retry-after"] != nil)
      try await second.wait("the refused connection is closed") { $0.isClosed }
      #expect(try await first.get("/").status == 200)
      await first.close()
    }
  }
}
