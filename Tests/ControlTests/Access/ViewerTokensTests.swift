import Base
@testable import Control
import Crypto
import CryptoExtras
import Foundation
import NIOCore
import Publishing
import ServerSupport
import Synchronization
import Testing

@Suite struct ViewerTokensTests {
  private let issuer = TokenIssuer()
  private let clock = TokenClock()
  private let cam = StreamName("cam-1")
  private let other = StreamName("other")

  private func tokens(
    _ keys: [JSONWebKey] = [JSONWebKey(secret: TokenIssuer.secret.utf8)],
    _ rules: JSONWebTokenRules = JSONWebTokenRules()
  ) -> ViewerTokens {
    ViewerTokens(
      keys: JSONWebKeys(keys), rules: rules,
      credentials: Authorizer(Authorizer.Rules(adminToken: Secret("sesame")), clock: .system()),
      now: clock.wall)
  }

  private func refusal(_ look: ViewerTokens.Look) -> CredentialRefusal? {
    if case .refused(let reason) = look { reason } else { nil }
  }

  private func grant(_ look: ViewerTokens.Look) -> AccessGrant? {
    if case .verified(let verified) = look { verified.grant } else { nil }
  }

  @Test func aTokenAllowsWhatItsClaimsSay() async throws {
    let tokens = tokens()
    let token = TokenIssuer.hs256(claims(#""watch":["cam-*","other"],"publish":"cam-1","record":[],"admin":"operate""#))
    let grant = try await tokens.grant(of: token).get()
    let (cam, other) = (try #require(cam), try #require(other))
    #expect(grant.name == "ann" && grant.scope == .operate)
    #expect(grant.allows(.watch, of: cam) && grant.allows(.watch, of: other))
    #expect(grant.allows(.publish, of: cam) && !grant.allows(.publish, of: other) && !grant.allows(.record, of: cam))
    #expect(tokens.remembered(ByteBuffer(string: token)) != nil)
    #expect(tokens.remembered(ByteBuffer(string: token + "x")) == nil)
  }

  @Test func eachAlgorithmIsVerifiedByAKeyOfItsOwnType() throws {
    let keys = try [issuer.p256.publicKey.pemRepresentation, issuer.ed25519.publicKey.pemRepresentation].map {
      try #require(JSONWebKey(pem: $0))
    }
    let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let rsaKey = try #require(JSONWebKey(pem: rsa.publicKey.pemRepresentation))
    #expect((keys + [rsaKey]).map(\.algorithm) == [.es256, .edDSA, .rs256])
    let all = tokens(keys + [rsaKey, JSONWebKey(secret: TokenIssuer.secret.utf8)])
    let signed = try TokenIssuer.token(header: #"{"alg":"RS256"}"#, claims: claims()) {
      Array(try rsa.signature(for: SHA256.hash(data: $0), padding: .insecurePKCS1v1_5).rawRepresentation)
    }
    let good = [try issuer.es256(claims()), try issuer.edDSA(claims()), signed, TokenIssuer.hs256(claims())]
    for token in good { #expect(grant(all.look(token))?.name == "ann") }
    for (index, token) in good.enumerated() {
      let without = tokens(
        [keys[0], keys[1], rsaKey, JSONWebKey(secret: TokenIssuer.secret.utf8)].enumerated()
          .filter { $0.offset != index }.map(\.element))
      #expect(refusal(without.look(token)) == .unknown)
    }
  }

  /// The public key's own text as a secret, no algorithm at all, and others that weir does not take.
  @Test func noTokenChoosesItsAlgorithm() throws {
    let pem = issuer.p256.publicKey.pemRepresentation
    let all = tokens([try #require(JSONWebKey(pem: pem))])
    #expect(refusal(all.look(TokenIssuer.hs256(claims(), secret: Array(pem.utf8)))) == .unknown)
    for algorithm in ["none", "None", "NONE", "HS512", "ES384", "PS256", "es256", ""] {
      for signature: [UInt8] in [[], [0]] {
        let token = TokenIssuer.token(header: #"{"alg":"\#(algorithm)"}"#, claims: claims()) { _ in signature }
        guard case .malformed = refusal(all.look(token)) else {
          Issue.record("\(algorithm)")
          continue
        }
      }
    }
    #expect(refusal(all.look(try issuer.es256(claims(), header: #"{"alg":"EdDSA"}"#))) == .unknown)
  }

  @Test func whatCannotBeReadIsRefusedWithAReason() throws {
    let tokens = tokens()
    let good = TokenIssuer.hs256(claims())
    let parts = good.split(separator: ".")
    for text in [
      "", ".", "..", "...", "eyJ", "eyJ..", "\(parts[0]).\(parts[1])", "\(good).", "\(good).x", good + "=", good + "A",
      " \(good)", good.uppercased(), String(repeating: "A", count: 1 << 20),
      "eyJ" + String(repeating: "A", count: 1 << 20),
      "\(parts[0]).\(parts[1]).\(String(repeating: "A", count: 1 << 20))", "\(parts[0])..\(parts[2])",
    ] { #expect(refusal(tokens.look(text)) != nil, "\(text.prefix(80))") }
    for claims in [
      "", "[]", "null", "{}", #"{"exp":"soon"}"#, #"{"exp":-1}"#, #"{"exp":1e300}"#, #"{"exp":9000000001}"#, "{",
      String(repeating: "[", count: 4000), claims(#""watch":"no such name""#), claims(#""watch":{}"#),
      claims(#""admin":"root""#), claims("", #","aud":"someone""#), claims("", #","nbf":"x""#),
    ] { #expect(refusal(tokens.look(TokenIssuer.hs256(claims))) != nil, "\(claims.prefix(80))") }
    let critical = TokenIssuer.hs256(claims(), header: #"{"alg":"HS256","crit":["exp"]}"#)
    #expect(refusal(tokens.look(critical)) == .malformed("it needs an extension that weir does not know (crit)"))
  }

  /// No byte of a token may change.
  @Test func everyByteCounts() {
    let tokens = tokens()
    let good = TokenIssuer.hs256(claims())
    for index in good.utf8.indices {
      for byte in [UInt8(ascii: "A"), UInt8(ascii: "b"), UInt8(ascii: ".")] where good.utf8[index] != byte {
        var bytes = Array(good.utf8)
        bytes[good.utf8.distance(from: good.utf8.startIndex, to: index)] = byte
        #expect(refusal(tokens.look(String(decoding: bytes, as: UTF8.self))) != nil)
      }
    }
  }

  @Test func aTokenHoldsForItsTime() throws {
    let tokens = tokens()
    let token = TokenIssuer.hs256(claims("", #","nbf":\#(TokenClock.start + 100)"#, expires: 200))
    #expect(refusal(tokens.look(token)) == .notYet)
    clock.pass(89)
    #expect(refusal(tokens.look(token)) == .notYet)
    clock.pass(1)
    guard case .verified(let verified) = tokens.look(token) else {
      Issue.record("10 s before its time it is accepted")
      return
    }
    clock.pass(119)
    #expect(verified.holds && grant(tokens.look(token)) != nil)
    clock.pass(1)
    #expect(!verified.holds && tokens.remembered(ByteBuffer(string: token)) == nil)
    #expect(refusal(tokens.look(token)) == .expired)
  }

  @Test func issuerAndAudienceMustBeTheConfiguredOnes() {
    var rules = JSONWebTokenRules()
    (rules.issuer, rules.audience) = ("https://a.example", "weir")
    let tokens = tokens([JSONWebKey(secret: TokenIssuer.secret.utf8)], rules)
    func isGood(_ more: String) -> Bool { grant(tokens.look(TokenIssuer.hs256(claims("", more)))) != nil }
    #expect(isGood(#","iss":"https://a.example","aud":"weir""#))
    #expect(isGood(#","iss":"https://a.example","aud":["x","weir"]"#))
    for more in [
      "", #","iss":"https://a.example""#, #","aud":"weir""#, #","iss":"https://a.example/","aud":"weir""#,
      #","iss":"https://a.example","aud":["x"]"#, #","iss":"https://a.example","aud":[]"#,
    ] { #expect(!isGood(more), "\(more)") }
  }

  @Test func aTokenWithoutExpiryIsOnlyTakenWhereThatIsConfigured() {
    let token = TokenIssuer.hs256(#"{"weir":{"watch":"*"}}"#)
    #expect(refusal(tokens().look(token)) == .malformed("it has no expiry (exp)"))
    var rules = JSONWebTokenRules()
    rules.needsExpiry = false
    #expect(grant(tokens([JSONWebKey(secret: TokenIssuer.secret.utf8)], rules).look(token)) != nil)
  }

  @Test func otherRulesAndKeysEndWhatTheOldOnesVerified() {
    let tokens = tokens()
    let token = TokenIssuer.hs256(claims())
    guard case .verified(let first) = tokens.look(token) else { Issue.record("it is good"); return }
    tokens.replaceRules(by: JSONWebTokenRules())
    tokens.keys.replaceLocal(by: [JSONWebKey(secret: TokenIssuer.secret.utf8)])
    #expect(first.holds, "the same again ends nothing")
    var rules = JSONWebTokenRules()
    rules.clockSkew = 0
    tokens.replaceRules(by: rules)
    #expect(!first.holds)
    guard case .verified(let second) = tokens.look(token) else { Issue.record("it is good by these, too"); return }
    tokens.keys.replaceLocal(by: [])
    #expect(!second.holds && refusal(tokens.look(token)) == .unknown)
  }

  @Test func theAdminTokenMayWatchEverything() throws {
    guard case .verified(let admin) = tokens().look("sesame") else { Issue.record("it is known"); return }
    #expect(admin.mayWatch(try #require(other)) && admin.grant.scope == .admin)
    #expect(refusal(tokens().look("sesam")) == .unknown)
  }

  @Test func rememberedTokensAreBounded() {
    let tokens = tokens()
    for number in 0..<(ViewerTokens.capacity + 100) {
      _ = tokens.look(TokenIssuer.hs256(claims("", #","n":\#(number)"#)))
    }
    #expect(tokens.rememberedCount <= ViewerTokens.capacity)
  }
}
