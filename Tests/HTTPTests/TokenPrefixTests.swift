import Base
@testable import HTTP
import NIOCore
import ServerSupport
import Storage
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(3))) struct TokenPrefixTests {
  @Test(arguments: [
    ("/~abc/live/cam/index.m3u8?x=1", "abc", "/live/cam/index.m3u8?x=1"), ("/~abc/", "abc", "/"), ("/~abc", "abc", ""),
    ("/~abc?x", "abc", "?x"), ("/~/live", "", "/live"), ("/%7Eabc/live", "abc", "/live"),
    ("/%7eabc/live", "abc", "/live"), ("http://weir.example/~abc/live", "abc", "/live"), ("/~a~b/~c/d", "a~b", "/~c/d"),
  ])
  func aTokenIsTakenOffThePath(target: String, token: String, rest: String) throws {
    let parts = try #require(TokenPrefix.split(ByteBuffer(string: target)))
    #expect(String(buffer: parts.token) == token && String(buffer: parts.rest) == rest)
  }

  @Test(arguments: [
    "", "/", "/live/cam", "~abc/live", "/a~b/live", "/live/~abc", "/%7", "/%7F/live", "*", "http://weir.example",
    "http://weir.example/live", "/?/~a/b", "//~abc/live",
  ])
  func otherTargetsHaveNone(target: String) { #expect(TokenPrefix.split(ByteBuffer(string: target)) == nil) }

  @Test func aTokenInAPathHasAFewCharactersAndSoMany() {
    #expect(TokenPrefix.text(ByteBuffer(string: "aZ09-._~")) == "aZ09-._~")
    #expect(TokenPrefix.text(ByteBuffer(string: String(repeating: "a", count: 1024))) != nil)
    for bad in ["", "a%2Fb", "a b", "a\"b", "ä", "a\nb", String(repeating: "a", count: 1025)] {
      #expect(TokenPrefix.text(ByteBuffer(string: bad)) == nil, "\(bad.prefix(9))")
    }
  }

  // MARK: Shared responses

  private final class Pass: ViewerPass {
    let name: String
    let isGood = Mutex(true)
    init(_ name: String) { self.name = name }
    var holds: Bool { isGood.withLock { $0 } }
  }

  private struct Rule: ViewerRule {
    func allows(_ pass: any ViewerPass) -> Bool { (pass as? Pass)?.name.hasPrefix("good") ?? false }
  }

  /// Knows the tokens good, good2 and other. Answers those that begin with good.
  final class Gate: ViewerPasses {
    private let passes = Dictionary(uniqueKeysWithValues: ["good", "good2", "other"].map { ($0, Pass($0)) })
    let calls = Mutex(0)
    let stamp = Generation()
    var count: Int { calls.withLock { $0 } }

    func revoke(_ token: String) { passes[token]?.isGood.withLock { $0 = false } }

    func remembered(_ token: ByteBuffer) -> (any ViewerPass)? {
      passes[String(buffer: token)].flatMap { $0.holds ? $0 : nil }
    }

    func route(_ request: HTTPRequest, _ loop: any EventLoop) -> HTTPAnswer {
      calls.withLock { $0 += 1 }
      if request.path == ["alone"] { return .now(.text("alone", cache: .never)) }
      guard let token = request.token, let pass = remembered(token), Rule().allows(pass) else {
        return .now(StandardResponse.passEnded.response)
      }
      let sharing = Cacheability(stamp)
      let response = HTTPResponse.text("media", cache: .immutable)
      let answer: HTTPAnswer =
        request.path == ["wait"]
        ? .later(loop.scheduleTask(in: .milliseconds(1500)) { response }.futureResult, sharing)
        : request.path == ["live"]
          ? .now(HTTPResponse(body: .live(Silence()))) : .now(response, sharing)
      return answer.admitted(by: pass, rule: Rule(), isPrivate: false)
    }
  }

  private struct Silence: LiveBody {
    func start(_ writer: LiveBodyWriter) {}
    func stop() {}
  }

  /// - Parameter tick: responses are kept for some ticks.
  private func run(
    tick: TimeAmount = .milliseconds(20), prefix: String = "",
    _ body: (_ gate: Gate, _ client: HTTPRawClient) async throws -> Void
  ) async throws {
    let gate = Gate()
    try await HTTPTestServer.run(
      tickInterval: tick, passes: gate, prefix: prefix, route: { gate.route($0, $1) }
    ) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      _ = try await client.get("/alone")
      gate.calls.withLock { $0 = 0 }
      try await body(gate, client)
      await client.close()
    }
  }

  @Test func verifiedTokensShareAResponseAndOthersNeverReachIt() async throws {
    // On a busy machine the requests take longer than some short ticks.
    try await run(tick: .seconds(1)) { gate, client in
      for token in ["good", "good2", "good", "good2"] {
        let found = try await client.get("/~\(token)/a")
        #expect(found.text == "media")
      }
      #expect(gate.count == 1)
      for path in ["/a", "/~other/a", "/~wrong/a", "/~/a", "/~goo/a", "/~good3/a"] {
        let found = try await client.get(path)
        #expect(found.status == 403, "\(path)")
      }
      #expect(gate.count == 7, "each of them went to the routes")
      let found = try await client.get("/~good/a")
      #expect(found.text == "media")
      #expect(gate.count == 7, "and none of them made an entry")
    }
  }

  @Test func behindAPrefixTheyShareTheSameResponse() async throws {
    try await run(tick: .seconds(1), prefix: "/weir") { gate, client in
      for path in ["/weir/~good/a", "/~good2/a", "/weir/~good2/a"] {
        let found = try await client.get(path)
        #expect(found.text == "media", "\(path)")
      }
      #expect(gate.count == 1)
      for path in ["/weir/a", "/weir/~other/a", "/weir/~wrong/a", "/weir/weir/~good/a"] {
        let found = try await client.get(path)
        #expect(found.status == 403, "\(path)")
      }
      #expect(gate.count == 5, "each of them went to the routes")
    }
  }

  @Test func aRevokedTokenGetsNothingMore() async throws {
    try await run { gate, client in
      for _ in 0..<2 {
        let found = try await client.get("/~good/a")
        #expect(found.text == "media")
      }
      gate.revoke("good")
      let refused = try await client.get("/~good/a")
      #expect(refused.status == 403)
      let other = try await client.get("/~good2/a")
      #expect(other.text == "media")
    }
  }

  @Test(arguments: ["good", "good2"]) func aRequestThatWaitsEndsWithItsToken(revoked: String) async throws {
    try await run { gate, client in
      try await client.send("GET /~good/wait HTTP/1.1\r\nHost: x\r\n\r\n")
      try await Task.sleep(for: .milliseconds(200))
      gate.revoke(revoked)
      let response = try await client.response()
      #expect(response.status == (revoked == "good" ? 403 : 200))
      if revoked == "good" { try await client.waitForClose() }
    }
  }

  @Test func anEndlessResponseEndsWithItsToken() async throws {
    try await run { gate, client in
      try await client.send("GET /~good/live HTTP/1.1\r\nHost: x\r\n\r\n")
      try await Task.sleep(for: .milliseconds(200))
      gate.revoke("good")
      try await client.waitForClose()
    }
  }
}
