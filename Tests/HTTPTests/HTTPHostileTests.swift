@testable import HTTP
import NIOCore
import ServerSupport
import Storage
import Testing

/// Peers that want no answer, or too many.
@Suite(.timeLimit(.minutes(3))) struct HTTPHostileTests {
  @Test(arguments: [
    ("GET /a/../../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /%2e%2e/secret HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /a%2fb HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /a%00 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET /a\\b HTTP/1.1\r\nHost: x\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\n\r\n", 400),
    ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
    ("GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
    ("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1048577\r\n\r\n", 413),
    ("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400),
    ("\u{16}\u{03}\u{01}\u{02}\u{00}\u{01}\u{00}\u{01}", 400),
    ("GARBAGE\r\n\r\n", 400),
  ])
  func areRefusedAndTheConnectionEnds(request: String, status: Int) async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send(request)
      let response = try await client.response()
      #expect(response.status == status)
      #expect(response["Connection"] == "close")
      try await client.waitForClose()
    }
  }

  @Test func aFaultIsAnsweredAfterTheRequestsBeforeIt() async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET /ok HTTP/1.1\r\nHost: x\r\n\r\n@@@ /bad HTTP/1.1\r\n\r\n")
      #expect(try await client.response().text == "get /ok 0")
      #expect(try await client.response().status == 400)
      try await client.waitForClose()
    }
  }

  @Test func responsesOfItsOwnThatAnAddressDoesNotTakeHaveABound() async throws {
    let body = ByteBuffer(repeating: 0x78, count: 8 << 20)
    let route = HTTPTestServer.always(HTTPResponse(body: .pieces([.bytes(body)])))
    try await HTTPTestServer.run(route: route) { address, _ in
      let request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n"
      var idle: [HTTPRawClient] = []
      for _ in 0..<4 {
        let client = try await HTTPRawClient.connect(to: address, receiveBuffer: 8192, reads: false)
        try await client.send(request)
        try client.readOnce()
        try await client.wait("the head") { !$0.received.isEmpty }
        idle.append(client)
      }
      // Of 1 GiB a sixteenth is for them, and an address has half of that.
      let late = try await HTTPRawClient.connect(to: address)
      try await late.send(request)
      var response = try await late.response()
      #expect(response.status == 503 && response["Retry-After"] == "5")
      await idle[0].close()
      while response.status == 503 {
        try await Task.sleep(for: .milliseconds(5))
        try await late.send(request)
        response = try await late.response()
      }
      #expect(response.body.count == body.readableBytes)
      for client in idle { await client.close() }
    }
  }

  @Test func mediaInMemoryAreSharedAndWhatWasMadeForAClientIsItsOwn() throws {
    let text = BodyPiece.bytes(ByteBuffer(repeating: 0x78, count: 100))
    let memory = BodyPiece.file(FileRange(file: try memoryFile(10), offset: 0, length: 10))
    let disk = BodyPiece.file(FileRange(file: try diskFile(10), offset: 0, length: 10))
    let own = [[text, memory], [disk], [text, disk], [disk, text, disk]].map(\.own)
    #expect(own.map { $0.bytes } == [0, 0, 100, 100])
    #expect(own.map { $0.end } == [0, 0, 100, 110])
  }

  @Test func aHeadMayHaveAsManyFieldsAsTheLimitAndNotOneMore() async throws {
    var limits = HTTPLimits()
    limits.headerCount = 10
    try await HTTPTestServer.run(limits: limits) { address, _ in
      let fields = { (count: Int) in "Host: x\r\n" + String(repeating: "A: b\r\n", count: count - 1) }
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.1\r\n\(fields(10))\r\n")
      #expect(try await client.response().status == 200)
      try await client.send("GET / HTTP/1.1\r\n\(fields(11))\r\n")
      #expect(try await client.response().status == 431)
      try await client.waitForClose()
    }
  }

  @Test func aFloodOfHeaderBytesEndsAtTheLimit() async throws {
    try await HTTPTestServer.run { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      let field = "X: " + String(repeating: "y", count: 4000) + "\r\n"
      try await client.send("GET / HTTP/1.1\r\nHost: x\r\n" + String(repeating: field, count: 50))
      #expect(try await client.response().status == 431)
      try await client.waitForClose()

      let long = try await HTTPRawClient.connect(to: address)
      try await long.send("GET /" + String(repeating: "a", count: 5000) + " HTTP/1.1\r\nHost: x\r\n\r\n")
      #expect(try await long.response().status == 414)
      try await long.waitForClose()
    }
  }

  @Test func aBodyOfTheLimitIsTakenAndOneByteMoreIsNot() async throws {
    var limits = HTTPLimits()
    limits.requestBodyBytes = 1000
    try await HTTPTestServer.run(limits: limits) { address, _ in
      let body = String(repeating: "a", count: 1000)
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" + body)
      #expect(try await client.response().text == "post / 1000")
      try await client.send(
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3e8\r\n\(body)\r\n1\r\nb\r\n")
      #expect(try await client.response().status == 413)
      try await client.waitForClose()
    }
  }

  @Test(arguments: ["GET", "HEAD", "OPTIONS"]) func aRequestThatChangesNothingHasNoBody(_ method: String) async throws {
    try await HTTPTestServer.run { address, _ in
      let empty = try await HTTPRawClient.connect(to: address)
      try await empty.send("\(method == "HEAD" ? "GET" : method) / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
      #expect(try await empty.response().status < 300)
      // Refused by the head: no byte of it is waited for.
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("\(method) /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 1048576\r\n\r\n")
      #expect(try await client.response(hasBody: method != "HEAD").status == 413)
      try await client.waitForClose()
    }
  }

  @Test func aConnectionThatNeverEndsItsHeadIsClosed() async throws {
    var limits = HTTPLimits()
    limits.headerTime = .milliseconds(1000)
    try await HTTPTestServer.run(limits: limits) { address, _ in
      let silent = try await HTTPRawClient.connect(to: address)
      let dripping = try await HTTPRawClient.connect(to: address)
      let later = try await HTTPRawClient.connect(to: address)
      #expect(try await later.get("/first").status == 200)
      let start = ContinuousClock.now
      for byte in "GET / HTTP/1.1\r\nHost: x\r\nX-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" {
        guard !dripping.isClosed || !later.isClosed else { break }
        try? await dripping.send(String(byte))
        try? await later.send(String(byte))
        try await Task.sleep(for: .milliseconds(50))
      }
      try await silent.waitForClose(for: .seconds(30))
      try await dripping.waitForClose(for: .seconds(30))
      try await later.waitForClose(for: .seconds(30))
      #expect(ContinuousClock.now - start < .seconds(30))
    }
  }

  @Test func aConnectionThatNeverEndsItsBodyIsClosed() async throws {
    var limits = HTTPLimits()
    limits.bodyTime = .milliseconds(500)
    try await HTTPTestServer.run(limits: limits) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc")
      try await client.waitForClose(for: .seconds(30))
    }
  }

  @Test func anIdleConnectionIsClosedButNotOneThatIsBeingAnswered() async throws {
    var limits = HTTPLimits()
    limits.idleTime = .milliseconds(200)
    limits.headerTime = .milliseconds(1000)
    let route: HTTPTestServer.Route = { request, loop in
      .later(loop.scheduleTask(in: .milliseconds(600)) { HTTPResponse.text("late", cache: .never) }.futureResult)
    }
    try await HTTPTestServer.run(limits: limits, route: route) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      #expect(try await client.get("/").text == "late")
      try await client.waitForClose(for: .seconds(30))
    }
  }

  @Test func `a full server says so, and a connection that asks nothing makes room for the next`() async throws {
    var limits = HTTPLimits()
    limits.connections = 2
    limits.refusedConnections = 1
    try await HTTPTestServer.run(limits: limits) { address, listener in
      let first = try await HTTPRawClient.connect(to: address)
      let second = try await HTTPRawClient.connect(to: address)
      #expect(try await first.get("/").status == 200)
      #expect(try await second.get("/").status == 200)
      let third = try await HTTPRawClient.connect(to: address)
      try await third.wait("the third is not counted") { _ in listener.connections == 3 }
      let fourth = try await HTTPRawClient.connect(to: address)
      try await third.waitForClose()
      let refusal = try await fourth.get("/")
      #expect(refusal.status == 503)
      #expect(refusal["Retry-After"] == "5")
      try await fourth.waitForClose()
      #expect(try await first.get("/").status == 200)
      await second.close()
      try await first.wait("the second is still counted") { _ in listener.connections == 1 }
      let next = try await HTTPRawClient.connect(to: address)
      #expect(try await next.get("/").status == 200)
      await first.close()
      await next.close()
    }
  }

  @Test func `who has heard that the server is full makes room for the next who asks`() async throws {
    var limits = HTTPLimits()
    limits.connections = 1
    limits.refusedConnections = 1
    limits.lingerTime = .seconds(60)
    try await HTTPTestServer.run(limits: limits) { address, listener in
      let served = try await HTTPRawClient.connect(to: address)
      #expect(try await served.get("/").status == 200)
      // None of them hangs up.
      var refused: [HTTPRawClient] = []
      for _ in 0..<5 {
        let client = try await HTTPRawClient.connect(to: address, closesWithServer: false)
        #expect(try await client.get("/").status == 503)
        refused.append(client)
      }
      try await served.wait("the earlier ones are kept") { _ in listener.connections == 2 }
      #expect(try await served.get("/").status == 200)
      for client in refused { await client.close() }
      await served.close()
    }
  }

  @Test func manyConnectionsOfOneAddressAreAllowedOnceTheyHaveAsked() async throws {
    var limits = HTTPLimits()
    limits.requestlessConnectionsPerAddress = 3
    try await HTTPTestServer.run(limits: limits) { address, listener in
      var clients: [HTTPRawClient] = []
      for _ in 0..<10 {
        let client = try await HTTPRawClient.connect(to: address)
        #expect(try await client.get("/").status == 200)
        clients.append(client)
      }
      for expected in 11...13 {
        let silent = try await HTTPRawClient.connect(to: address)
        try await silent.wait("not counted") { _ in listener.connections == expected }
        clients.append(silent)
      }
      let tooMany = try await HTTPRawClient.connect(to: address)
      try await tooMany.waitForClose()
      for client in clients { await client.close() }
      try await tooMany.wait("still counted") { _ in listener.connections == 0 }
    }
  }
}
