@testable import HTTP
import NIOCore
import NIOHTTP1
import NIOHTTP2
import NIOSSL
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct HTTP2Tests {
  /// Runs `body` with a server that speaks both versions and a client of HTTP/2.
  private func run(
    limits: HTTPLimits = HTTPLimits(), window: Int = 65535,
    route: @escaping HTTPTestServer.Route = HTTPTestServer.defaultRoute,
    _ body: (_ client: HTTP2TestClient, _ listener: HTTPListener) async throws -> Void
  ) async throws {
    let (server, client) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(limits: limits, tls: server, route: route) { address, listener in
      let connection = try await HTTP2TestClient.connect(to: address, tls: client, window: window)
      try await body(connection, listener)
      await connection.close()
    }
  }

  private static let media = [
    BodyPiece.bytes(ByteBuffer(bytes: patternBytes(0..<100))), .bytes(ByteBuffer(bytes: patternBytes(100..<300))),
  ]

  /// Routes with everything that a response can be.
  private static let variety: HTTPTestServer.Route = { request, _ in
    switch request.path.first {
    case "media": .now(.media(media, type: .mp4, cache: .immutable, entityTag: "\"tag\""))
    case "cached": .now(HTTPResponse(cached))
    case "json": .now(numbers)
    case "moved": .now(.redirect(to: "/media"))
    case "problem": .now(Problem.notFound("There is nothing here.").response)
    case "empty": .now(HTTPResponse(status: .noContent))
    case "live": .now(HTTPResponse(headers: [HeaderField("Content-Type", "video/mp4")], body: .live(ShortBody())))
    default:
      .now(
        .text(
          "\(request.method) \(request.target.path) \(request.header("Host") ?? "-") \(request.body.readableBytes)",
          cache: .never))
    }
  }

  private static let numbers = HTTPResponse(
    headers: [
      HeaderField("Content-Type", ContentType.json.rawValue), HeaderField("Cache-Control", CachePolicy.never.value),
    ],
    compression: .gzip, body: .pieces([.bytes(ByteBuffer(string: "\(Array(0..<100))"))]))

  private static let cached = PreencodedResponse(
    type: .hls, cache: .livePlaylist, body: ByteBuffer(string: String(repeating: "#EXTM3U\n", count: 100)))

  /// Two stretches, then the end.
  private struct ShortBody: LiveBody {
    func start(_ writer: LiveBodyWriter) {
      writer.write([.bytes(ByteBuffer(string: "one "))])
      writer.write([.bytes(ByteBuffer(string: "two"))])
      writer.finish()
    }
    func stop() {}
  }

  @Test(arguments: [
    ("/", "GET", []), ("/media", "GET", []), ("/media", "HEAD", []), ("/media", "GET", ["Range: bytes=50-249"]),
    ("/media", "HEAD", ["Range: bytes=50-249"]), ("/media", "GET", ["Range: bytes=300-"]),
    ("/media", "GET", ["Range: bytes=0-9", "If-Range: \"other\""]), ("/media", "GET", ["If-None-Match: \"tag\""]),
    ("/cached", "GET", []), ("/cached", "GET", ["Accept-Encoding: gzip"]),
    ("/cached", "HEAD", ["Accept-Encoding: gzip"]), ("/cached", "GET", ["If-None-Match: *"]),
    ("/json", "GET", ["Accept-Encoding: br, gzip"]), ("/json", "GET", ["Accept-Encoding: gzip;q=0"]),
    ("/moved", "GET", []), ("/problem", "GET", []), ("/empty", "GET", []), ("/live", "GET", []), ("/live", "HEAD", []),
    ("/anything", "OPTIONS", ["Origin: https://other.example"]), ("/a/../b", "GET", []),
    ("/\(String(repeating: "x", count: 5000))", "GET", []),
  ])
  func bothVersionsAnswerAlike(_ path: String, _ method: String, _ fields: [String]) async throws {
    let (server, context) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    let (old, new) = (["transfer-encoding", "connection", "date"], [":status", "date"])
    try await HTTPTestServer.run(tls: server, route: Self.variety) { address, _ in
      var plain = TLSConfiguration.makeClientConfiguration()
      plain.certificateVerification = .none
      let first = try await HTTPRawClient.connect(to: address, tls: try NIOSSLContext(configuration: plain))
      let lines = (["\(method) \(path) HTTP/1.1", "Host: localhost"] + fields).joined(separator: "\r\n")
      try await first.send(lines + "\r\n\r\n")
      let expected = try await first.response(hasBody: method != "HEAD")
      let second = try await HTTP2TestClient.connect(to: address, tls: context)
      let pairs = fields.map { line in
        let colon = line.firstIndex(of: ":") ?? line.endIndex
        return (line[..<colon].lowercased(), String(line[colon...].dropFirst(2)))
      }
      let answer = try await second.get(path, method: method, fields: pairs)
      #expect(answer.status == expected.status)
      #expect(answer.body == expected.body)
      #expect(
        answer.fields.filter { !new.contains($0.name) }.map { "\($0.name): \($0.value)" }.sorted()
          == expected.fields.map { ($0.name.lowercased(), $0.value) }.filter { !old.contains($0.0) }
          .map { "\($0.0): \($0.1)" }.sorted())
      #expect(answer["date"]?.utf8.count == HTTPDate.length)
      await first.close()
      await second.close()
    }
  }

  @Test(arguments: [(1, 300), (1000, 1 << 20), (65535, 300_000), (1 << 20, 3_000_000)])
  func bodiesArriveWholeThroughWindowsOfAnySize(_ window: Int, _ total: Int) async throws {
    let memory = try memoryFile(total)
    let disk = try diskFile(total)
    let route: HTTPTestServer.Route = { request, _ in
      let file = request.path.first == "disk" ? disk : memory
      return .now(
        .media(
          [
            .bytes(ByteBuffer(bytes: patternBytes(0..<100))), .file(FileRange(file: file, offset: 100, length: 100)),
            .bytes(ByteBuffer(bytes: patternBytes(200..<250))),
            .file(FileRange(file: file, offset: 250, length: total - 250)),
          ], type: .mp4, cache: .immutable))
    }
    try await run(window: window, route: route) { client, _ in
      try await client.open()
      for path in ["/memory", "/disk"] {
        let id = try await client.request(path)
        try await client.wait("the window is filled") { ($0.streams[id]?.body.count ?? 0) >= min(window, total) }
        #expect(client[id].body.count == min(window, total), "the window is a promise")
        try await client.open(id)
        #expect(try await client.response(id).body == patternBytes(0..<total))
      }
    }
  }

  @Test func aRequestWithABodyIsAnsweredWhenTheBodyIsHere() async throws {
    var limits = HTTPLimits()
    limits.requestBodyBytes = 1 << 20
    try await run(limits: limits, route: Self.variety) { client, _ in
      let id = try await client.request("/post", method: "POST", isEnd: false)
      for index in 0..<60 {
        let data = HTTP2Frame.FramePayload.Data(
          data: .byteBuffer(ByteBuffer(repeating: 0x20, count: 10_000)), endStream: index == 59)
        try await client.send(.data(data), on: id)
      }
      #expect(try await client.response(id).text == "post /post localhost 600000")
    }
  }

  @Test func tooLargeBodiesAndHeadsAreRefusedAndTheConnectionGoesOn() async throws {
    var limits = HTTPLimits()
    limits.requestBodyBytes = 1000
    try await run(limits: limits) { client, _ in
      let announced = try await client.request("/", method: "POST", fields: [("content-length", "1001")], isEnd: false)
      #expect(try await client.response(announced).status == 413)
      let first = try await client.request("/", method: "POST", isEnd: false)
      let second = try await client.request("/", method: "POST", isEnd: false)
      let half = HTTP2Frame.FramePayload.Data(data: .byteBuffer(ByteBuffer(repeating: 1, count: 501)))
      try await client.send(.data(half), on: first)
      try await client.send(.data(half), on: second)
      #expect(try await client.response(second).status == 413, "the bodies of a connection count together")
      try await client.wait("what is left of the body is not wanted") { $0.streams[second]?.reset == .noError }
      try await client.send(.data(.init(data: .byteBuffer(ByteBuffer()), endStream: true)), on: first)
      #expect(try await client.response(first).text == "post / 501")
      #expect(try await client.get("/", fields: (0..<101).map { ("x-\($0)", "y") }).status == 431)
      #expect(try await client.get("/", fields: [("x", String(repeating: "y", count: 9000))]).status == 431)
      #expect(try await client.get("/").status == 200)
    }
  }

  /// RFC 9113 §8.3.1. The client's authority is localhost.
  @Test(arguments: [
    ("localhost", 200), ("LocalHost", 200), ("localhost:443", 200), ("localhost:8443", 400), ("localhos", 400),
    ("localhosts", 400), ("evil.example", 400), ("", 400),
  ])
  func aHostBesideTheAuthorityNamesTheSame(_ host: String, _ status: Int) async throws {
    try await run { client, _ in
      let answer = try await client.get("/", fields: [("x", "y"), ("host", host)])
      #expect(answer.status == status)
      #expect(try await client.get("/").status == 200, "the connection goes on")
    }
  }

  @Test func aWaitingRequestHoldsUpNoOtherAndMayEnd() async throws {
    let promise = Mutex<[EventLoopPromise<HTTPResponse>]>([])
    let route: HTTPTestServer.Route = { request, eventLoop in
      guard request.path.first == "later" else { return .now(.text("now", cache: .never)) }
      let later = eventLoop.makePromise(of: HTTPResponse.self)
      promise.withLock { $0.append(later) }
      return .later(later.futureResult)
    }
    try await run(route: route) { client, _ in
      let waiting = try await client.request("/later")
      let leaving = try await client.request("/later")
      let failing = try await client.request("/later")
      #expect(try await client.get("/now").text == "now")
      try await client.reset(leaving)
      #expect(try await client.get("/now").text == "now")
      let promises = promise.withLock { $0 }
      try #require(promises.count == 3)
      promises[1].succeed(.text("not received", cache: .never))
      promises[0].succeed(.text("part", cache: .never))
      promises[2].fail(ChannelError.eof)
      #expect(try await client.response(waiting).text == "part")
      #expect(try await client.response(failing).status == 500)
      #expect(client[leaving].status == nil)
      #expect(try await client.get("/now").text == "now")
    }
  }
}
