import Base
@testable import Control
import Crypto
import CryptoExtras
import FMP4
import ServerSupport
import Synchronization
import Testing

@Suite struct JSONWebKeysTests {
  private let issuer = TokenIssuer()
  private let clock = TokenClock()

  /// An address whose answer a test decides.
  private final class Address: Sendable {
    let set = Mutex<[UInt8]?>(nil)
    let requests = Mutex(0)

    func fetch() throws(ValueError) -> [JSONWebKey] {
      requests.withLock { $0 += 1 }
      guard let text = set.withLock({ $0 }) else { throw ValueError("it is away", advice: "") }
      return try JSONWebKeySet.keys(in: text)
    }
  }

  private func tokens(_ address: Address) -> ViewerTokens {
    let wall = clock.wall
    let keys = JSONWebKeys(
      [], fetch: { () async throws(ValueError) in try address.fetch() },
      now: { MonotonicTime(nanoseconds: wall().nanoseconds) })
    return ViewerTokens(keys: keys, credentials: Authorizer(clock: .system()), now: wall)
  }

  private func isGood(_ tokens: ViewerTokens, _ token: String) async -> Bool {
    if case .success = await tokens.verified(token) { true } else { false }
  }

  @Test func anUnknownKeyIsAskedForAtMostOnceInTenSeconds() async throws {
    let address = Address()
    let tokens = tokens(address)
    let far = #","exp2":0"#
    let token = try issuer.es256(claims("", far, expires: 1_000_000), header: #"{"alg":"ES256","kid":"p"}"#)
    for _ in 0..<5 { #expect(await !isGood(tokens, token)) }
    #expect(address.requests.withLock { $0 } == 1)
    address.set.withLock { $0 = TokenIssuer.set(issuer.entries()) }
    clock.pass(9)
    #expect(await !isGood(tokens, token))
    clock.pass(1)
    #expect(await isGood(tokens, token))
    let unknown = try issuer.es256(claims(), header: #"{"alg":"ES256","kid":"q"}"#)
    for _ in 0..<5 { #expect(await !isGood(tokens, unknown)) }
    #expect(address.requests.withLock { $0 } == 2)
    clock.pass(10)
    for _ in 0..<5 { #expect(await !isGood(tokens, unknown)) }
    #expect(address.requests.withLock { $0 } == 3)
  }

  /// An idle server sleeps until then.
  @Test func aSetIsLookedAtWhenThatIsDue() async throws {
    #expect(JSONWebKeys([]).timeToWork == .seconds(3600))
    let address = Address()
    address.set.withLock { $0 = TokenIssuer.set(issuer.entries()) }
    let keys = tokens(address).keys
    #expect(keys.timeToWork == .zero)
    await keys.refresh()
    #expect(keys.timeToWork == .seconds(300))
    clock.pass(290)
    #expect(keys.timeToWork == .seconds(10))
    address.set.withLock { $0 = nil }
    clock.pass(10)
    #expect(keys.timeToWork == .zero)
    await keys.refresh()
    #expect(keys.timeToWork == .seconds(10), "what failed is tried again")
  }

  @Test func aKeyThatLeavesTheSetEndsItsTokensAndNoOthers() async throws {
    let address = Address()
    address.set.withLock { $0 = TokenIssuer.set(issuer.entries()) }
    let tokens = tokens(address)
    let leaving = try await tokens.verified(issuer.es256(claims(), header: #"{"alg":"ES256","kid":"p"}"#)).get()
    let staying = try await tokens.verified(issuer.edDSA(claims(), header: #"{"alg":"EdDSA","kid":"e"}"#)).get()
    address.set.withLock { $0 = TokenIssuer.set([issuer.entries()[1]]) }
    await tokens.keys.refresh()
    #expect(!leaving.holds && staying.holds)
  }

  @Test func keysOfAnAddressThatIsAwayForADayHoldNoLonger() async throws {
    let address = Address()
    address.set.withLock { $0 = TokenIssuer.set(issuer.entries()) }
    let tokens = tokens(address)
    let token = try issuer.es256(claims(expires: 1_000_000), header: #"{"alg":"ES256","kid":"p"}"#)
    let verified = try await tokens.verified(token).get()
    address.set.withLock { $0 = nil }
    clock.pass(86_399)
    await tokens.keys.refresh()
    tokens.keys.withdrawIfStale()
    #expect(verified.holds)
    clock.pass(1)
    tokens.keys.withdrawIfStale()
    #expect(!verified.holds)
    #expect(await !isGood(tokens, token))
  }

  @Test(arguments: [60, 300, 900, 86_400])
  func `A set that can be reached is fetched again before its keys become stale`(_ staleness: Int) {
    let times = JSONWebKeys.Times(staleness: .seconds(staleness))
    #expect(times.refresh + times.pause * 2 < times.staleness && times.refresh >= times.pause)
    #expect(times.refresh <= .seconds(300))
  }

  @Test func anotherAddressKeepsTheKeysThatBothHaveAndDropsWhatTheOldOneStillSends() async throws {
    let address = Address()
    address.set.withLock { $0 = TokenIssuer.set(issuer.entries()) }
    let tokens = tokens(address)
    let leaving = try await tokens.verified(issuer.es256(claims(), header: #"{"alg":"ES256","kid":"p"}"#)).get()
    let staying = try await tokens.verified(issuer.edDSA(claims(), header: #"{"alg":"EdDSA","kid":"e"}"#)).get()
    let other = try #require(try JSONWebKeySetAddress(parsing: "https://issuer.example/jwks.json"))
    tokens.keys.follow(
      local: [], at: other, fetched: try JSONWebKeySet.keys(in: TokenIssuer.set([issuer.entries()[1]])),
      times: JSONWebKeys.Times())
    #expect(!leaving.holds && staying.holds && tokens.keys.address == other)
    tokens.keys.follow(local: [], at: other, fetched: nil, times: JSONWebKeys.Times())
    #expect(staying.holds, "the same address again ends nothing")
    tokens.keys.follow(local: [], at: nil, fetched: nil, times: JSONWebKeys.Times())
    await tokens.keys.refresh()
    #expect(!staying.holds && tokens.keys.address == nil)
    #expect(address.requests.withLock { $0 } == 1, "the old address is not asked again")
  }

  @Test func aSetGivesTheKeysThatWeirCanUse() throws {
    let others = [
      #"{"kty":"oct","k":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY"}"#,
      #"{"kty":"EC","crv":"P-384","x":"AA","y":"AA"}"#,
      #"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#, #"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#, #"{"kid":"x"}"#, "7",
      #"{"kty":["EC"]}"#, issuer.entries()[0].replacing("\"kty\"", with: #""use":"enc","kty""#),
      issuer.entries()[0].replacing("\"kty\"", with: #""alg":"ES512","kty""#),
    ]
    #expect(try JSONWebKeySet.keys(in: TokenIssuer.set(others + issuer.entries())).map(\.id) == ["p", "e"])
    for text in [
      "", "[]", "{}", #"{"keys":{}}"#, #"{"keys":[]}"#, #"{"keys":[7]}"#, String(repeating: "[", count: 60_000),
      String(repeating: " ", count: 70_000) + #"{"keys":[]}"#,
    ] { #expect(throws: ValueError.self) { try JSONWebKeySet.keys(in: Array(text.utf8)) } }
    #expect(throws: ValueError.self) { try JSONWebKeySet.keys(in: TokenIssuer.set(others)) }
  }

  @Test func aFileMayHaveSeveralPublicKeys() throws {
    let (a, b) = (issuer.p256.publicKey.pemRepresentation, issuer.ed25519.publicKey.pemRepresentation)
    #expect(try JSONWebKeySet.keys(inPEM: "one:\n\(a)\n\(b)").map(\.algorithm) == [.es256, .edDSA])
    let broken = "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"
    for text in ["", "x", issuer.p256.pemRepresentation, broken, a + "\n" + broken] {
      #expect(throws: ValueError.self) { try JSONWebKeySet.keys(inPEM: text) }
    }
  }

  @Test func onlyHTTPSAndThisMachineAreAsked() throws {
    for good in [
      "https://a.example/jwks.json", "http://127.0.0.1:99/a", "http://localhost/a", "http://[::1]:8/a",
    ] {
      let address = try JSONWebKeySetAddress(parsing: good)
      #expect(address != nil, "\(good)")
    }
    for bad in [
      "http://a.example/jwks.json", "http://127.0.0.1.evil.example/", "http://localhost.example/", "ftp://a/b",
      "https://", "http://localhost@evil.example/", "http://127.0.0.1:8@evil.example/", "file:///etc/passwd",
    ] { #expect(throws: ValueError.self, "\(bad)") { _ = try JSONWebKeySetAddress(parsing: bad) } }
    let file = try JSONWebKeySetAddress(parsing: "/etc/weir/jwks.json")
    #expect(file == nil)
  }

  @Test(
    arguments: [
      ("", []), ("AA", [0]), ("AAA", [0, 0]), ("AAAA", [0, 0, 0]), ("-_8", [0xFB, 0xFF]), ("AB", nil), ("AAB", nil),
      ("A", nil), ("AAAAA", nil), ("AA==", nil), ("A+", nil), ("A/", nil), ("A A", nil), ("AÄ", nil),
    ] as [(String, [UInt8]?)])
  func textOfRFC4648HasOneForm(text: String, bytes: [UInt8]?) {
    #expect(Base64URL.decoded(text.utf8) == bytes)
  }
}
