@testable import Base
import NIOCore
import Support
import Testing

@Suite("Limits of connections that have not published yet")
struct PeerTableTests {
  private func limits(_ change: (inout PeerLimits) -> Void = { _ in }) -> PeerLimits {
    var limits = PeerLimits()
    limits.unauthenticatedPerAddress = 3
    limits.unauthenticated = 5
    limits.failureBurst = 4
    limits.failuresPerSecond = 1
    change(&limits)
    return limits
  }

  @Test func anAddressHasAsManyUnauthenticatedConnectionsAsItMayAndNoMore() {
    var peers = PeerTable(limits: limits())
    for _ in 0..<3 { #expect(peers.arrive("a", now: 0) == nil) }
    #expect(peers.arrive("a", now: 0) == .tooManyUnauthenticated)
    #expect(peers.arrive("b", now: 0) == nil)
    #expect(peers.arrive("b", now: 0) == nil)
    // All addresses together.
    #expect(peers.arrive("c", now: 0) == .tooManyUnauthenticated)
    peers.noLongerUnauthenticated("a", failed: false, now: 0)
    #expect(peers.arrive("c", now: 0) == nil)
  }

  @Test func failuresMakeAnAddressWaitUntilTimeForgivesThem() {
    var peers = PeerTable(limits: limits())
    for _ in 0..<4 {
      #expect(peers.slowing("a", now: 0) == nil)
      #expect(peers.arrive("a", now: 0) == nil)
      peers.noLongerUnauthenticated("a", failed: true, now: 0)
    }
    #expect(peers.slowing("a", now: 0) == PeerTable.Slowing(isNew: true))
    #expect(peers.slowing("a", now: 0) == PeerTable.Slowing(isNew: false))
    #expect(peers.arrive("a", now: 0) == nil, "others may share the address")
    #expect(peers.slowing("b", now: 0) == nil)
    #expect(peers.slowing("a", now: 1_000_000_000) == nil)
  }

  @Test func anAddressHasAsManyConnectionsAsAreAllowedUnlessItStandsForMany() {
    var peers = PeerTable(limits: limits { $0.connectionsPerAddress = 2 })
    for _ in 0..<2 {
      #expect(peers.arrive("a", now: 0) == nil)
      peers.noLongerUnauthenticated("a", failed: false, now: 0)
    }
    #expect(peers.arrive("a", now: 0) == .tooMany)
    #expect(peers.arrive("a", isProxy: true, now: 0) == nil)
    for _ in 0..<2 { peers.leave("a") }
    #expect(peers.arrive("a", now: 0) == nil)
  }

  @Test func goodPublishersNeverCount() {
    var peers = PeerTable(limits: limits())
    for _ in 0..<1000 {
      #expect(peers.arrive("a", now: 0) == nil)
      peers.noLongerUnauthenticated("a", failed: false, now: 0)
    }
  }

  @Test func noMoreAddressesAreRememberedThanMayBe() {
    var peers = PeerTable(limits: limits { $0.addresses = 100 })
    for index in 0..<1000 {
      _ = peers.arrive("\(index)", now: .at(Int64(index)))
      peers.noLongerUnauthenticated("\(index)", failed: true, now: .at(Int64(index)))
      peers.leave("\(index)")
    }
    #expect(peers.remembered <= 100)
  }

  @Test func addressesAreNamedByWhatOneHostOwns() throws {
    #expect(PeerText.host(of: try SocketAddress(ipAddress: "10.0.0.5", port: 1)) == "10.0.0.5")
    #expect(PeerText.host(of: try SocketAddress(ipAddress: "::ffff:10.0.0.5", port: 1)) == "10.0.0.5")
    #expect(PeerText.host(of: try SocketAddress(ipAddress: "2001:db8:1:2:3:4:5:6", port: 1)) == "2001:db8:1:2::/64")
    #expect(PeerText.place(of: try SocketAddress(ipAddress: "2001:db8::1", port: 7)) == "[2001:db8::1]:7")
    #expect(PeerText.place(of: try SocketAddress(ipAddress: "::ffff:10.0.0.5", port: 7)) == "10.0.0.5:7")
  }

  @Test func aBucketRefillsWithTimeAndNeverOverflows() {
    var bucket = TokenBucket(burst: 2, perSecond: 1)
    let taken = [0, 0, 999_999_999, 1_000_000_000].map { bucket.take(now: $0) }
    #expect(taken == [true, true, false, true])
    bucket.refill(now: 1_000_000_000_000)
    #expect(bucket.tokens == 2)
  }
}
