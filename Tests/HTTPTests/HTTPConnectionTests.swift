@testable import HTTP
import NIOCore
import NIOHTTP1
import NIOPosix
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTPConnectionTests {
  @Test func answersOneRequestAfterTheOtherOnOneConnection() async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      for index in 0..<5 {
        let response = try await client.get("/live/\(index)")
        #expect(response.status == 200)
        #expect(response.text == "get /live/\(index) 0")
      }
      await client.close()
    }
  }

  @Test func takesARequestByteByByte() async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      for name in ["one", "two"] {
        try await client.drip("GET /\(name)?a=b HTTP/1.1\r\nHost: test\r\nX-Some: thing\r\n\r\n")
        #expect(try await client.response().text == "get /\(name) 0")
      }
      try await client.drip("POST /three HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
      try await client.drip("3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n")
      #expect(try await client.response().text == "post /three 7")
      await client.close()
    }
  }

  @Test func answersPipelinedRequestsInOrder() async throws {
    // The first answer comes last: the others have to wait for it.
    let route: HTTPTestServer.Route = { request, loop in
      let response = HTTPResponse.text(request.target.path, cache: .never)
      guard request.path.first == "slow" else { return .now(response) }
      return .later(loop.scheduleTask(in: .milliseconds(50)) { response }.futureResult)
    }
    try await HTTPTestServer.run(route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      let paths = ["/slow", "/b", "/slow/2", "/c", "/d"]
      try await client.send(paths.map { "GET \($0) HTTP/1.1\r\nHost: test\r\n\r\n" }.joined())
      for path in paths { #expect(try await client.response().text == path) }
      await client.close()
    }
  }

  @Test func answersPipelinedRequestsUpToTheLimitAndThenCloses() async throws {
    var limits = HTTPLimits()
    limits.pipelinedRequests = 4
    let route: HTTPTestServer.Route = { _, loop in
      .later(loop.scheduleTask(in: .milliseconds(20)) { HTTPResponse.text("x", cache: .never) }.futureResult)
    }
    try await HTTPTestServer.run(limits: limits, route: route) { address, _ in
      let request = "GET / HTTP/1.1\r\nHost: test\r\n\r\n"
      let modest = try await HTTPRawClient.connect(to: address)
      try await modest.send(String(repeating: request, count: 5))
      for _ in 0..<5 { #expect(try await modest.response().status == 200) }
      await modest.close()

      let greedy = try await HTTPRawClient.connect(to: address)
      try await greedy.send(String(repeating: request, count: 6))
      var statuses: [Int] = []
      while statuses.last != 429 { statuses.append(try await greedy.response().status) }
      #expect(statuses == [200, 200, 200, 200, 200, 429])
      try await greedy.waitForClose()
    }
  }

  @Test func answersHEADAsItAnswersGETButForTheBody() async throws {
    let text = String(repeating: "#EXTM3U\n", count: 100)
    let file = try memoryFile(5000)
    let responses: [String: HTTPResponse] = [
      "cached": HTTPResponse(PreencodedResponse(type: .hls, cache: .livePlaylist, body: ByteBuffer(string: text))),
      "media": .media([.file(FileRange(file: file, offset: 0, length: 5000))], type: .mp4, cache: .immutable),
      "text": .text(text, cache: .never), "none": .redirect(to: "/"), "problem": Problem.notFound("x").response,
    ]
    let route: HTTPTestServer.Route = { request, _ in
      .now(responses[request.path.first ?? ""] ?? HTTPResponse(status: .badRequest))
    }
    try await HTTPTestServer.run(route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      for name in responses.keys.sorted() {
        for fields in [[], ["Accept-Encoding: gzip"], ["Range: bytes=10-19"]] {
          let request = fields.first ?? "X: y"
          let get = try await client.get("/\(name)", request)
          let head = try await client.get("/\(name)", method: "HEAD", request)
          #expect(get.status == head.status)
          let undated = { (response: HTTPRawClient.Response) in
            response.fields.filter { $0.name != "Date" }.map { "\($0.name): \($0.value)" }
          }
          #expect(undated(get) == undated(head), "\(name) \(fields)")
          #expect(get["Content-Length"] == String(get.body.count))
          #expect(head.body.isEmpty)
        }
      }
      await client.close()
    }
  }

  @Test func answersOPTIONSEverywhereAndAllowsOtherOriginsToRead() async throws {
    let route = HTTPTestServer.always(Problem.notFound("nothing").response)
    try await HTTPTestServer.run(route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      for target in ["/", "/live/cam/index.m3u8", "/no/such/thing", "*"] {
        let preflight = try await client.get(
          target, method: "OPTIONS", "Origin: https://example.org", "Access-Control-Request-Method: GET")
        #expect(preflight.status == 204)
        let isOpen = target.hasPrefix("/live")
        #expect(preflight["Access-Control-Allow-Origin"] == (isOpen ? "*" : nil))
        #expect(preflight["Access-Control-Allow-Methods"] == (isOpen ? "GET, HEAD, OPTIONS" : nil))
        #expect(preflight["Content-Length"] == nil)
      }
      let closed = try await client.get("/x", "Origin: https://example.org")
      #expect(closed.status == 404 && closed["Access-Control-Allow-Origin"] == nil)
      let missing = try await client.get("/live/x", "Origin: https://example.org")
      #expect(missing.status == 404)
      #expect(missing["Access-Control-Allow-Origin"] == "*")
      #expect(missing["Access-Control-Expose-Headers"] == "Content-Length, Content-Range, Date")
      #expect(missing["X-Content-Type-Options"] == "nosniff")
      #expect(missing["Content-Type"] == "application/problem+json")
      await client.close()
    }
  }

  @Test func closesForHTTP10UnlessItAsksToKeepAlive() async throws {
    let cached = PreencodedResponse(type: .text, cache: .never, body: ByteBuffer(string: "hello"))
    try await HTTPTestServer.run(route: HTTPTestServer.always(HTTPResponse(cached))) { address, _ in
      let closing = try await HTTPRawClient.connect(to: address)
      try await closing.send("GET / HTTP/1.0\r\n\r\n")
      let first = try await closing.response()
      #expect(first.text == "hello")
      #expect(first["Connection"] == "close")
      try await closing.waitForClose()

      let staying = try await HTTPRawClient.connect(to: address)
      for _ in 0..<3 {
        try await staying.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        let response = try await staying.response()
        #expect(response["Connection"] == "keep-alive")
        #expect(response.text == "hello")
      }
      try await staying.send("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
      let last = try await staying.response()
      #expect(last["Connection"] == "close")
      #expect(last.text == "hello")
      try await staying.waitForClose()
    }
  }

  @Test func asksForTheBodyThatWaitsToBeAskedFor() async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("PUT /a HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n")
      #expect(try await client.response().status == 100)
      try await client.send("abc")
      #expect(try await client.response().text == "put /a 3")
      try await client.send("PUT /a HTTP/1.1\r\nHost: test\r\nExpect: miracles\r\nContent-Length: 3\r\n\r\n")
      #expect(try await client.response().status == 417)
      try await client.waitForClose()
    }
  }

  @Test func answersAClientThatClosesItsSideAfterAsking() async throws {
    let file = try memoryFile(3 << 20)
    let media = HTTPResponse.media(
      [.file(FileRange(file: file, offset: 0, length: 3 << 20))], type: .mp4, cache: .immutable)
    try await HTTPTestServer.run(route: HTTPTestServer.always(media)) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n")
      try await client.closeOutput()
      #expect(try await client.response().body == patternBytes(0..<3 << 20))
      try await client.waitForClose()
    }
  }

  @Test func answersAFailureOfARouteWith500AndGoesOn() async throws {
    struct Broken: Error {}
    let route: HTTPTestServer.Route = { request, loop in
      request.path.first == "bad" ? .later(loop.makeFailedFuture(Broken())) : .now(.text("fine", cache: .never))
    }
    try await HTTPTestServer.run(route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      #expect(try await client.get("/bad").status == 500)
      #expect(try await client.get("/good").text == "fine")
      await client.close()
    }
  }

  @Test func servesIPv6() async throws {
    try await HTTPTestServer.run(address: "::1") { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      #expect(try await client.get("/six").text == "get /six 0")
      await client.close()
    }
  }

  @Test func stopsWhileConnectionsAreIdleAndWaiting() async throws {
    // One loop, so that both connections hear of the stop together.
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let answer = loop.makePromise(of: HTTPResponse.self)
    let asked = Mutex(false)
    let route: HTTPTestServer.Route = { _, _ in
      asked.withLock { $0 = true }
      return .later(answer.futureResult)
    }
    var limits = HTTPLimits()
    limits.stopTime = .seconds(30)
    try await HTTPTestServer.run(limits: limits, group: loop, route: route) { address, listener in
      let idle = try await HTTPRawClient.connect(to: address)
      let waiting = try await HTTPRawClient.connect(to: address)
      try await waiting.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n")
      try await waiting.wait("the route was not asked") { _ in asked.withLock { $0 } && listener.connections == 2 }
      async let stopped: Void = listener.stop()
      try await idle.waitForClose()
      #expect(!waiting.isClosed)
      answer.succeed(.text("late", cache: .never))
      let response = try await waiting.response()
      #expect(response.text == "late")
      #expect(response["Connection"] == "close")
      try await waiting.waitForClose()
      await stopped
    }
  }
}
