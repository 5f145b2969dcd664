@testable import API
import Base
@testable import Control
import Delivery
@testable import HTTP
import NIOCore
import NIOHTTP1
import NIOPosix
import Publishing
import Support
import Testing

/// Each route that changes something × tokens × origins.
@Suite struct AdminGateTests {
  private static let token = "sesame-4711"
  private static let host = "weir.example:8080"

  enum Credential: String, CaseIterable, Sendable {
    case none = ""
    case empty = "Bearer "
    case wrong = "Bearer sesame-4712"
    case longer = "Bearer sesame-47111"
    case shorter = "Bearer sesame-471"
    case bare = "sesame-4711"
    case basic = "Basic sesame-4711"
    case right = "Bearer sesame-4711"
    case lowerCase = "bearer sesame-4711"

    var isRight: Bool { self == .right || self == .lowerCase }
  }

  enum Origin: String, CaseIterable, Sendable {
    case absent = ""
    case own = "http://weir.example:8080"
    case ownBehindTLS = "https://weir.example:8080"
    case otherPort = "http://weir.example:8081"
    case noPort = "http://weir.example"
    case otherHost = "http://evil.example:8080"
    case suffix = "http://evil-weir.example:8080"
    case opaque = "null"
    case file = "file://"

    var isOwn: Bool { self == .absent || self == .own || self == .ownBehindTLS }
  }

  /// All of the table that need the token, each with an address: words out of several stand for each other.
  static let routes: [(HTTPRequest.Method, [String])] = APITable.routes.filter { $0.access != .open }.map { route in
    let method: HTTPRequest.Method =
      route.method == .post ? .post : route.method == .put ? .put : route.method == .delete ? .delete : .get
    return (method, route.pattern.split(separator: "/").map { $0.split(separator: "|").first.map(String.init) ?? "" })
  }

  private func request(
    _ route: (HTTPRequest.Method, [String]), _ credential: Credential, _ origin: Origin, isTLS: Bool = false
  ) -> HTTPRequest {
    var fields = HTTPHeaders([("Host", Self.host)])
    if credential != .none { fields.add(name: "Authorization", value: credential.rawValue) }
    if origin != .absent { fields.add(name: "Origin", value: origin.rawValue) }
    return HTTPRequest(
      method: route.0, target: RequestTarget(segments: route.1), fields: .list(fields),
      source: RequestSource(isTLS: isTLS))
  }

  private func gate(_ token: String?, clock: SteadyClock = .system()) -> AdminGate {
    AdminGate(
      authorizer: Authorizer(Authorizer.Rules(adminToken: token.map { Secret($0) }), clock: clock),
      attempts: AdminAttempts(clock: clock))
  }

  /// 200 for an admitted request.
  private func status(_ request: HTTPRequest, token: String?) -> Int {
    switch APITable.admit(request, gate(token)) {
    case .success: 200
    case .failure(let refusal): Int(refusal.problem.status.code)
    }
  }

  @Test(arguments: Credential.allCases, Origin.allCases)
  func onlyTheTokenAndTheOwnOriginMayChangeAnything(_ credential: Credential, _ origin: Origin) throws {
    for route in Self.routes {
      let request = request(route, credential, origin)
      let expected = !origin.isOwn ? 403 : credential.isRight ? 200 : 401
      #expect(status(request, token: Self.token) == expected, "\(route)")
      #expect(status(request, token: nil) == 403, "\(route)")
    }
  }

  @Test func aPageOverPlainHTTPIsNotTheOriginOfOneOverTLS() throws {
    for (origin, expected) in [(Origin.own, 403), (.ownBehindTLS, 200)] {
      #expect(status(request(Self.routes[0], .right, origin, isTLS: true), token: Self.token) == expected)
    }
  }

  @Test func twoCredentialsOrOriginsAreNone() throws {
    var fields = HTTPHeaders([("Host", Self.host), ("Authorization", "Bearer \(Self.token)")])
    fields.add(name: "Authorization", value: "Bearer \(Self.token)")
    let recording = ["api", "v1", "recordings", "cam", "20261121T072410Z.mp4"]
    let target = RequestTarget(segments: recording)
    #expect(status(HTTPRequest(method: .delete, target: target, fields: .list(fields)), token: Self.token) == 401)
    fields = HTTPHeaders([("Host", Self.host), ("Authorization", "Bearer \(Self.token)")])
    for _ in 0..<2 { fields.add(name: "Origin", value: Origin.own.rawValue) }
    #expect(status(HTTPRequest(method: .delete, target: target, fields: .list(fields)), token: Self.token) == 403)
  }

  @Test func anAddressThatGuessesIsNotListenedToForAWhile() throws {
    let time = ManualClock()
    let gate = gate(Self.token, clock: time.clock)
    for _ in 0..<Int(AdminAttempts.burst) {
      #expect(gate.refusal(of: request(Self.routes[0], .wrong, .absent))?.status == .unauthorized)
    }
    let refusal = try #require(gate.refusal(of: request(Self.routes[0], .right, .absent)))
    #expect(refusal.status == .tooManyRequests && refusal.headers == [HeaderField("Retry-After", "1")])
    #expect(gate.attempts.counts == (wrong: 20, refused: 1))
    time.advance(seconds: 1)
    #expect(gate.refusal(of: request(Self.routes[0], .right, .absent)) == nil)
  }

  @Test func aRefusalSaysHowToAskAndNeverTheToken() throws {
    let gate = gate(Self.token)
    let refusal = try #require(gate.refusal(of: request(Self.routes[0], .wrong, .absent)))
    #expect(refusal.headers == [HeaderField("WWW-Authenticate", #"Bearer realm="weir", error="invalid_token""#)])
    var text = ""
    dump(refusal, to: &text)
    dump(gate, to: &text)
    #expect(!text.contains("sesame-4711") && !text.contains("sesame-4712"))
  }

  @Test func otherMethodsAreNotAllowed() {
    let recording = ["api", "v1", "recordings", "cam", "20261121T072410Z.mp4"]
    for (method, path) in [
      (HTTPRequest.Method.post, ["api", "v1", "recordings"]), (.post, recording), (.get, recording + ["restore"]),
      (.delete, recording + ["protect"]), (.options, recording),
    ] {
      #expect(status(request((method, path), .right, .absent), token: Self.token) == 405)
    }
  }
}
