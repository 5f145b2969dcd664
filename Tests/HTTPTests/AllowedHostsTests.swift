import Base
@testable import HTTP
import NIOCore
import NIOHTTP1
import ServerSupport
import Synchronization
import Testing

/// Under which names a request is answered.
@Suite(.timeLimit(.minutes(3))) struct AllowedHostsTests {
  private static let hosts = AllowedHosts(["Live.Example.org.", "*.cdn.example"])

  private func allows(_ host: String, or further: () -> AllowedHosts? = { nil }) -> Bool {
    Self.hosts.allow(host.utf8Span.span, or: further)
  }

  @Test(arguments: [
    "127.0.0.1", "127.0.0.1:8080", "203.0.113.255:80", "[::1]", "[2001:db8::1]:8443", "[fe80::1%25eth0]", "weir",
    "WEIR:8080", "my_service:8080", "localhost", "localhost:8080", "LOCALHOST.", "demo.localhost", "studio.local:8080",
    "Studio.LOCAL.", "weir.internal", "weir.home.arpa:8080", "live.example.org", "LIVE.example.ORG:8443",
    "live.example.org.", "live.example.org.:8080", "a.cdn.example", "A.cdn.example.:80", "live.example.org:", "",
  ])
  func answered(_ host: String) { #expect(allows(host)) }

  @Test(arguments: [
    "evil.example", "evil.example:8080", "evil.example.", "localhost.evil.example", "127.0.0.1.evil.example",
    "live.example.org.evil.example", "evil-live.example.org", "xlocal.example", "cdn.example", "a.b.cdn.example",
    "1.2.3", "1.2.3.256", "1.2.3.4.5", "1..2.3", "localhost@evil.example", "evil.example@localhost",
    "localhost:80@evil.example",
    "user@localhost", "localhost/evil.example", "localhost:8080x", "localhost:80:80", "[::1", "[::1]x",
    "[::1].evil.example",
    "evil%2Eexample", "evil。example", "evil.example,localhost", "localhost evil", "::1", "*.cdn.example",
  ])
  func refused(_ host: String) { #expect(!allows(host)) }

  @Test func namesOfTheCertificateCountWhereNothingElseDoes() {
    let certificate = AllowedHosts(["*.tls.example"])
    #expect(allows("a.tls.example", or: { certificate }))
    #expect(!allows("evil.example", or: { certificate }))
    var isAsked = false
    let isAllowed = allows("live.example.org") {
      isAsked = true
      return nil
    }
    #expect(isAllowed && !isAsked)
  }

  @Test(arguments: [
    ("live.example.org", "live.example.org"), ("LIVE.Example.org.", "live.example.org"),
    ("*.Example.org", "*.example.org"),
    ("weir", "weir"),
  ])
  func aSettingIsAName(text: String, name: String) throws { #expect(try AllowedHosts.parse(text) == name) }

  @Test(arguments: [
    "", "*", "*.", "a.*.example", "*a.example", "https://live.example.org", "live.example.org:8080",
    "live.example.org/", "a b",
    "[::1]", "a..b", "user@a",
  ])
  func anythingElseIsNone(text: String) {
    let error = #expect(throws: ValueError.self) { try AllowedHosts.parse(text) }
    #expect(error?.advice.contains("*.example.org") == true)
  }

  // MARK: Requests

  /// Requests that reached the routes.
  private final class Count: Sendable {
    private let number = Mutex(0)
    var now: Int { number.withLock { $0 } }
    var route: HTTPTestServer.Route {
      { request, loop in
        self.number.withLock { $0 += 1 }
        return HTTPTestServer.defaultRoute(request, loop)
      }
    }
  }

  @Test(arguments: [
    ("GET / HTTP/1.1\r\nHost: evil.example:8080\r\n\r\n", 421), ("GET / HTTP/1.1\r\nHOST: Evil.Example\r\n\r\n", 421),
    ("HEAD / HTTP/1.1\r\nX: 1\r\nHost: evil.example\r\n\r\n", 421),
    ("POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\n\r\nabc", 421),
    ("POST / HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n", 421),
    ("GET / HTTP/1.0\r\nHost: evil.example\r\n\r\n", 421),
    // What the target names counts (RFC 9112 §3.2.2).
    ("GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
    ("GET HTTPS://evil.example?a HTTP/1.1\r\nHost: localhost\r\n\r\n", 421),
    ("GET http://localhost:80/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200),
    ("GET / HTTP/1.0\r\n\r\n", 200), ("GET / HTTP/1.1\r\nHost:\r\n\r\n", 200),
    ("GET / HTTP/1.1\r\nHost: live.example.org\r\n\r\n", 200), ("GET / HTTP/1.1\r\nHost: tls.example\r\n\r\n", 200),
    ("GET /public HTTP/1.1\r\nHost: evil.example\r\n\r\n", 200),
  ])
  func aRequestForAnotherHostReachesNoRoute(_ request: String, status: Int) async throws {
    let count = Count()
    try await HTTPTestServer.run(
      hosts: Self.hosts, certificateHosts: { AllowedHosts(["tls.example"]) },
      isForAnyName: { $0.path.first == "public" }, route: count.route
    ) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send(request)
      let response = try await client.response()
      #expect(response.status == status && count.now == (status == 200 ? 1 : 0))
      guard status == 421 else { return }
      #expect(response["Content-Type"] == "application/problem+json")
      #expect(response.text.contains("vil.") && response.text.contains("--allowed-host"))
      try await client.waitForClose()
    }
  }

  @Test func theHostIsToldWithoutControlCharactersAndShortened() throws {
    let long = "\u{202e}\"" + String(repeating: "x", count: 8000) + ".example"
    let problem = AllowedHosts.refusal(of: long.utf8Span.span)
    #expect(problem.status.code == 421 && problem.detail.utf8.count < 400 && !problem.detail.contains("\u{202e}"))
  }

  @Test func aReloadCountsForOpenConnections() async throws {
    try await HTTPTestServer.run(isForAnyName: { _ in false }) { address, listener in
      listener.policy.now.hosts = Self.hosts
      let client = try await HTTPRawClient.connect(to: address)
      let request = "GET / HTTP/1.1\r\nHost: live.example.org\r\n\r\n"
      try await client.send(request)
      #expect(try await client.response().status == 200)
      listener.policy.now.hosts = AllowedHosts()
      try await client.send(request)
      #expect(try await client.response().status == 421)
    }
  }

  @Test func whatATrustedProxyPassesOnIsAnswered() async throws {
    let here = try #require(AddressRange(parsing: "127.0.0.1"))
    try await HTTPTestServer.run(proxies: TrustedProxies([here]), isForAnyName: { _ in false }) { address, _ in
      let client = try await HTTPRawClient.connect(to: address)
      try await client.send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
      #expect(try await client.response().status == 200)
    }
  }

  @Test func theAuthorityOfHTTP2IsTheHost() async throws {
    let (server, context) = try tlsContexts(ServerCertificate.protocols, client: ["h2"])
    try await HTTPTestServer.run(tls: server, isForAnyName: { _ in false }) { address, _ in
      let client = try await HTTP2TestClient.connect(to: address, tls: context)
      let foreign = try await client.response(try await client.request("/", authority: "evil.example"))
      #expect(foreign.status == 421)
      // One stream is refused, and the connection goes on.
      #expect(try await client.get("/").status == 200)
      let two = try await client.response(
        try await client.request("/", fields: [("host", "evil.example")], authority: "localhost"))
      #expect(two.status == 400)
      await client.close()
    }
  }
}
