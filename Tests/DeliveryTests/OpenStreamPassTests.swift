import Base
@testable import Control
@testable import Delivery
import HTTP
import Publishing
import Support
import Synchronization
import Testing

@Suite struct OpenStreamPassTests {
  /// The rules of a server, and how often they were looked at.
  private final class Rules: Sendable {
    let rule = Mutex(ViewersRule.open)
    let changes = Generation()
    let looks = Mutex(0)

    func change(to rule: ViewersRule) {
      self.rule.withLock { $0 = rule }
      changes.change()
    }
  }

  private let rules = Rules()

  private func pass(_ tokens: [VerifiedToken] = []) throws -> OpenStreamPass {
    let rules = rules
    return OpenStreamPass(
      try #require(StreamName("cam")), tokens,
      rule: { _ in
        rules.looks.withLock { $0 += 1 }
        return rules.rule.withLock { $0 }
      }, rules: rules.changes, version: rules.changes.version)
  }

  @Test func itHoldsUntilTheStreamWantsTokens() throws {
    let pass = try pass()
    for _ in 0..<100 { #expect(pass.holds) }
    #expect(rules.looks.withLock { $0 } == 0, "rules that did not change are not looked at")
    rules.change(to: .open)
    for _ in 0..<100 { #expect(pass.holds) }
    #expect(rules.looks.withLock { $0 } == 1)
    rules.change(to: .token)
    #expect(!pass.holds)
  }

  @Test func aTokenThatMayWatchTheStreamGoesOn() throws {
    let stands = Mutex(true)
    var grant = AccessGrant(name: "ann")
    grant.streams[.watch] = [try StreamPattern(parsing: "cam")]
    let token = VerifiedToken(grant, now: { 0 }) { stands.withLock { $0 } }
    let other = VerifiedToken(AccessGrant(name: "bob"), now: { 0 }) { true }
    let (good, bad) = (try pass([other, token]), try pass([other]))
    rules.change(to: .token)
    #expect(good.holds && !bad.holds)
    stands.withLock { $0 = false }
    #expect(!good.holds)
  }

  /// What others share has no tokens; a viewer that has one is not cut off when the stream closes.
  @Test func aSharedPassIsExtendedByTheTokenOfEachViewer() throws {
    let stands = Mutex(true)
    var grant = AccessGrant(name: "ann")
    grant.streams[.watch] = [try StreamPattern(parsing: "cam")]
    let token = VerifiedToken(grant, now: { 0 }) { stands.withLock { $0 } }
    let other = VerifiedToken(AccessGrant(name: "bob"), now: { 0 }) { true }
    let shared = try pass()
    let (good, bad) = (shared.extended(by: token), shared.extended(by: other))
    #expect(good.holds && bad.holds, "the stream is open")
    rules.change(to: .token)
    #expect(good.holds && !bad.holds && !shared.holds)
    stands.withLock { $0 = false }
    #expect(!good.holds)
  }
}
