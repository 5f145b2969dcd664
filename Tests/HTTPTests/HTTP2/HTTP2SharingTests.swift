import Base
@testable import HTTP
import NIOCore
import NIOPosix
import ServerSupport
import Storage
import Synchronization
import Testing

/// Requests over HTTP/2 use the loop's table of responses, as those of HTTP/1.1 do.
@Suite(.timeLimit(.minutes(3))) struct HTTP2SharingTests {
  private typealias Body = (
    _ counter: CountedRoute, _ client: HTTP2TestClient, _ connect: () async throws -> HTTP2TestClient
  ) async throws -> Void

  private func run(_ body: Body) async throws {
    let counter = CountedRoute()
    let (server, tls) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    // One loop: what it knows all connections know.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    try await HTTPTestServer.run(
      tls: server, group: group, tickInterval: .seconds(60), route: { counter.route($0, $1) }
    ) { address, _ in
      // A connection's first request is answered by the routes.
      let connect = {
        let client = try await HTTP2TestClient.connect(to: address, tls: tls)
        #expect(try await client.get("/alone").status == 200)
        counter.calls.withLock { $0 = 0 }
        return client
      }
      let client = try await connect()
      try await body(counter, client, connect)
      await client.close()
    }
    try await group.shutdownGracefully()
  }

  @Test func `the same target is answered once, until something changes`() async throws {
    try await run { counter, client, _ in
      for _ in 0..<4 {
        let response = try await client.get("/a")
        #expect(response.text == "/a 1" && response["content-length"] == "4" && response["date"] != nil)
      }
      counter.stamp.change()
      for _ in 0..<3 { #expect(try await client.get("/a").text == "/a 2") }
    }
  }

  @Test func `both versions share one table`() async throws {
    let counter = CountedRoute()
    let stamp = Generation()
    let table = ResponseTable()
    let target = ByteBuffer(string: "/a")
    let answer = counter.route(
      HTTPRequest(method: .get, target: RequestTarget(segments: ["a"])), NIOSingletons.posixEventLoopGroup.any())
    guard case .now(let response) = answer.kind else {
      Issue.record("the route answers later")
      return
    }
    table.keep(response, of: answer.shared(Cacheability(stamp)), for: target)
    let found = try #require(table.find(target))
    for _ in 0..<3 {
      guard case .pieces(let pieces) = found.http2(acceptsGzip: false, date: HTTPDate(second: 5)).body else {
        Issue.record("the body has no end")
        return
      }
      #expect(pieces.totalLength == 4)
      switch found.content(acceptsGzip: false, date: HTTPDate(second: 5)) {
      case .pieces(_, let pieces): #expect(pieces.totalLength == 4)
      case .buffer(let bytes): #expect(String(buffer: bytes).hasSuffix("\r\n\r\n/a 1"))
      case .live: Issue.record("the body has no end")
      }
    }
  }

  @Test func `conditions, ranges and other methods are answered by the routes`() async throws {
    try await run { counter, client, _ in
      let first = try await client.get("/a")
      #expect(first.text == "/a 1")
      #expect(try await client.get("/a", fields: [("range", "bytes=3-3")]).text == "2")
      #expect(try await client.get("/a", fields: [("if-none-match", "\"3\"")]).status == 304)
      #expect(try await client.get("/a", method: "HEAD")["content-length"] == "4")
      #expect(counter.count == 4)
      #expect(try await client.get("/a").text == "/a 1")
    }
  }

  @Test func `a client that accepts gzip gets that form, and another does not`() async throws {
    try await run { counter, client, _ in
      for _ in 0..<3 {
        let plain = try await client.get("/list")
        #expect(plain["content-encoding"] == nil && plain.text.hasPrefix("#EXT 1"))
        let gzip = try await client.get("/list", fields: [("accept-encoding", "gzip, br")])
        #expect(gzip["content-encoding"] == "gzip" && gzip.body.starts(with: [0x1f, 0x8b]))
      }
      #expect(counter.count == 1)
    }
  }

  @Test func `streams that wait for the same are answered together, and one that was reset is not`() async throws {
    try await run { counter, client, connect in
      let other = try await connect()
      var waiting: [HTTP2TestClient.Stream] = []
      let ids = try await [client.request("/wait"), client.request("/wait"), client.request("/wait")]
      let others = try await [other.request("/wait"), other.request("/wait")]
      try await client.reset(ids[1])
      for id in [ids[0], ids[2]] { waiting.append(try await client.response(id)) }
      for id in others { waiting.append(try await other.response(id)) }
      #expect(waiting.map(\.text) == [String](repeating: "/wait 1", count: 4))
      #expect(client[ids[1]].status == nil)
      #expect(counter.count == 1)
      #expect(try await client.get("/wait").text == "/wait 2", "what was waited for is asked for again")
      await other.close()
    }
  }

  @Test func `a client is counted once in a tick, and one for whom there is no room hears why`() async throws {
    try await run { counter, client, _ in
      for _ in 0..<20 { #expect(try await client.get("/a", fields: [("user-agent", "one")]).text == "/a 1") }
      #expect((1...2).contains(counter.admission.admitted.withLock { $0 }))
      let second = try await client.get("/a", fields: [("user-agent", "two")])
      #expect(second.text == "/a 1")
      counter.admission.isOpen.withLock { $0 = false }
      #expect(try await client.get("/a", fields: [("user-agent", "three")]).status == 503)
    }
  }

  // MARK: Rules

  private func runGate(
    tick: TimeAmount = .milliseconds(20),
    _ body: (_ gate: TokenPrefixTests.Gate, _ client: HTTP2TestClient) async throws -> Void
  ) async throws {
    let gate = TokenPrefixTests.Gate()
    let (server, tls) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(tls: server, tickInterval: tick, passes: gate, route: { gate.route($0, $1) }) {
      address, _ in
      let client = try await HTTP2TestClient.connect(to: address, tls: tls)
      // A connection's first request is answered by the routes.
      #expect(try await client.get("/alone").status == 200)
      gate.calls.withLock { $0 = 0 }
      try await body(gate, client)
      await client.close()
    }
  }

  @Test func `tokens of one connection share a response, and one that was revoked gets it no longer`() async throws {
    // Responses are kept for some ticks.
    try await runGate(tick: .seconds(60)) { gate, client in
      for token in ["good", "good2", "good2", "good"] {
        let answer = try await client.get("/~\(token)/a")
        #expect(answer.text == "media")
      }
      #expect(gate.count == 1)
      for path in ["/a", "/~other/a", "/~wrong/a", "/~/a", "/~goo/a"] {
        #expect(try await client.get(path).status == 403, "\(path)")
      }
      #expect(gate.count == 6, "each of them went to the routes")
      gate.revoke("good")
      for _ in 0..<2 {
        #expect(try await client.get("/~good/a").status == 403)
        #expect(try await client.get("/~good2/a").text == "media")
      }
      #expect(gate.count == 8)
    }
  }

  @Test func `a request that waits ends with its token, and another one of its connection goes on`() async throws {
    try await runGate { gate, client in
      let (first, second) = try await (client.request("/~good/wait"), client.request("/~good2/wait"))
      // The first asks the routes; who joins it is answered by the table.
      let third = try await client.request("/~good/wait")
      try await Task.sleep(for: .milliseconds(200))
      gate.revoke("good")
      #expect(try await client.response(first).status == 403)
      #expect(try await client.response(third).status == 403)
      #expect(try await client.response(second).text == "media")
      #expect(gate.count == 1)
      #expect(try await client.get("/~good2/a").text == "media")
    }
  }
}
