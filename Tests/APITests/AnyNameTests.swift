@testable import API
import Base
@testable import Control
import Delivery
import HTTP
import NIOCore
import NIOHTTP1
import Publishing
import ServerSupport
import Support
import Synchronization
import Testing

/// What is answered although the request names another host.
@Suite struct AnyNameTests {
  private let clock = ManualClock()

  private func rule(
    _ rules: Authorizer.Rules = Authorizer.Rules(adminToken: Secret("sesame")), attempts: AdminAttempts? = nil,
    keys: JSONWebKeys = JSONWebKeys([])
  ) -> AnyName {
    let authorizer = Authorizer(rules, clock: clock.clock)
    let tokens = ViewerTokens(keys: keys, credentials: authorizer)
    return AnyName(
      authorizer: authorizer,
      viewers: ViewerGate(
        tokens: tokens, rule: { _ in .open }, hasRules: { false }, rules: Generation(),
        attempts: attempts ?? AdminAttempts(of: .viewers, clock: clock.clock)))
  }

  private func request(
    _ method: HTTPRequest.Method, _ target: String, bearer: String? = nil, token: String? = nil
  ) throws -> HTTPRequest {
    HTTPRequest(
      method: method, target: try RequestTarget(parsing: target),
      fields: .list(HTTPHeaders(bearer.map { [("Authorization", "Bearer \($0)")] } ?? [])),
      token: token.map { ByteBuffer(string: $0) })
  }

  @Test(arguments: [
    "/live/cam/index.m3u8", "/live/cam/manifest.mpd", "/live/cam/stream.mp4", "/live/cam/thumbnail.jpg",
    "/live/cam/e1/av/12.m4s", "/time", "/healthz", "/readyz",
  ])
  func `media, the time and probes are read under any name`(_ target: String) throws {
    for method in [HTTPRequest.Method.get, .head, .options] {
      #expect(rule().answers(try request(method, target)))
    }
    #expect(!rule().answers(try request(.post, target)))
  }

  @Test(arguments: [
    "/", "/live", "/live/cam", "/live/cam/status.json", "/live/cam/status%2Ejson", "/watch/cam", "/embed/cam",
    "/publish/cam",
    "/web/weir-player.js", "/recordings", "/recordings/cam/20261121T072410Z.mp4", "/api", "/api/v1/streams", "/metrics",
    "/whip/cam", "/whep/cam", "/time/x",
  ])
  func `all else needs a token that holds`(_ target: String) throws {
    #expect(!rule().answers(try request(.get, target)))
    #expect(!rule().answers(try request(.get, target, bearer: "wrong")))
    #expect(rule().answers(try request(.get, target, bearer: "sesame")))
    #expect(rule().answers(try request(.options, target)), "it comes before a request with a token")
  }

  @Test func `a token before the path is judged by the gate, but not where a key is needed`() throws {
    #expect(rule().answers(try request(.get, "/api/v1/streams", token: "any")))
    #expect(rule().answers(try request(.post, "/whep/cam", token: "any")))
    #expect(!rule().answers(try request(.post, "/whip/cam", token: "any")))
    #expect(!rule().answers(try request(.post, "/live/cam/ingest", token: "any")))
  }

  @Test(arguments: ["/whip/cam", "/live/cam/ingest"])
  func `a publisher needs a key of its name, or any token where publishers need none`(_ target: String) throws {
    #expect(!rule().answers(try request(.post, target)))
    #expect(!rule().answers(try request(.post, "\(target)?key=sesame")), "no key is needed, so it proves nothing")
    #expect(rule().answers(try request(.post, target, bearer: "sesame")))
    var keys = PublishKeys()
    keys.add(Secret("geheim"), for: .all)
    let closed = rule(Authorizer.Rules(publishKeys: keys, adminToken: Secret("sesame")))
    #expect(closed.answers(try request(.post, target, bearer: "geheim")))
    #expect(closed.answers(try request(.post, "\(target)?key=geheim")))
    for refused in ["wrong", "sesame", ""] {
      #expect(!closed.answers(try request(.post, target, bearer: refused)), "\(refused)")
    }
    #expect(!closed.answers(try request(.post, target)))
  }

  @Test func `a session is known to its peer alone`() throws {
    for first in ["whip", "whep"] {
      for method in [HTTPRequest.Method.patch, .delete] {
        #expect(rule().answers(try request(method, "/\(first)/cam/0123456789abcdef")))
      }
    }
  }

  @Test func `wrong tokens are counted, and then the right one does not help`() throws {
    let attempts = AdminAttempts(of: .viewers, clock: clock.clock)
    let rule = rule(attempts: attempts)
    for number in 0..<Int(AdminAttempts.burst) {
      #expect(!rule.answers(try request(.get, "/api/v1/streams", bearer: "guess\(number)")))
    }
    #expect(attempts.counts.wrong == Int(AdminAttempts.burst))
    #expect(!rule.answers(try request(.get, "/api/v1/streams", bearer: "sesame")))
    clock.advance(seconds: 2)
    #expect(rule.answers(try request(.get, "/api/v1/streams", bearer: "sesame")))
  }

  @Test(arguments: ["/whip/cam", "/live/cam/ingest"])
  func `publish keys cannot be guessed`(_ target: String) throws {
    let attempts = AdminAttempts(of: .viewers, clock: clock.clock)
    var keys = PublishKeys()
    keys.add(Secret("geheim"), for: .all)
    let rule = rule(Authorizer.Rules(publishKeys: keys, adminToken: Secret("sesame")), attempts: attempts)
    for number in 0..<Int(AdminAttempts.burst) {
      #expect(!rule.answers(try request(.post, "\(target)?key=guess\(number)")))
    }
    #expect(attempts.counts.wrong == Int(AdminAttempts.burst))
    #expect(!rule.answers(try request(.post, "\(target)?key=geheim")), "the 21st")
    #expect(!rule.answers(try request(.post, target)))
    #expect(attempts.counts.wrong == Int(AdminAttempts.burst), "one without a key guesses nothing")
    clock.advance(seconds: 2)
    #expect(rule.answers(try request(.post, "\(target)?key=geheim")))
  }

  @Test(arguments: ["/whip/cam", "/live/cam/ingest"])
  func `what encoders send where no key is needed is told nowhere, and guesses no token`(_ target: String) throws {
    let attempts = AdminAttempts(of: .viewers, clock: clock.clock)
    let rule = rule(attempts: attempts)
    for number in 0..<Int(AdminAttempts.burst) {
      #expect(!rule.answers(try request(.post, target, bearer: "guess\(number)")))
    }
    #expect(attempts.counts.wrong == 0)
    #expect(!rule.answers(try request(.post, target, bearer: "sesame")))
    clock.advance(seconds: 2)
    #expect(rule.answers(try request(.post, target, bearer: "sesame")))
  }

  @Test func `a token of an unknown key is a wrong one, and its key is fetched once`() async throws {
    let (fetches, attempts) = (Fetches(), AdminAttempts(of: .viewers, clock: clock.clock))
    let keys = JSONWebKeys(
      [],
      fetch: { () async throws(ValueError) in
        fetches.count.withLock { $0 += 1 }
        return []
      })
    let rule = rule(attempts: attempts, keys: keys)
    let token = try TokenIssuer().es256(claims(), header: #"{"alg":"ES256","kid":"unknown"}"#)
    for target in ["/metrics", "/metrics", "/api/v1/streams"] {
      #expect(!rule.answers(try request(.get, target, bearer: token)))
    }
    #expect(attempts.counts.wrong == 3)
    while fetches.count.withLock({ $0 }) == 0 { await Task.yield() }
    #expect(fetches.count.withLock { $0 } == 1)
  }

  private final class Fetches: Sendable { let count = Mutex(0) }
}
