import Base
import Testing

@Suite struct AddressCountTests {
  @Test func `an address gets its share, and all get no more than there is`() {
    var count = AddressCount(perAddress: 2, inAll: 3)
    let first = ["a", "a", "a", "b", "b"].map { count.admit($0) }
    #expect(first == [true, true, false, true, false])
    #expect(!count.hasRoom(for: "c"))
    count.leave("a")
    let second = ["c", "c"].map { count.admit($0) }
    #expect(second == [true, false])
    // One that was never admitted frees nothing.
    count.leave("d")
    #expect(!count.hasRoom(for: "d"))
  }

  @Test func `the addresses with most are known`() {
    var count = AddressCount(perAddress: 2, inAll: 3)
    #expect(count.largest.isEmpty && !count.isFull)
    for address in ["a", "b"] { _ = count.admit(address) }
    #expect(count.largest == ["a", "b"])
    _ = count.admit("b")
    #expect(count.largest == ["b"] && count.isFull && count.hasShare(for: "a") && !count.hasShare(for: "b"))
  }

  @Test func `one address takes a quarter of the connections that have not published`() {
    var limits = PeerLimits()
    limits.share(64)
    #expect(limits.unauthenticated == 64 && limits.unauthenticatedPerAddress == 16)
    limits = PeerLimits()
    limits.share(12)
    #expect(limits.unauthenticated == 12 && limits.unauthenticatedPerAddress == 6)
    limits = PeerLimits()
    limits.share(100_000)
    #expect(limits.unauthenticated == 8192 && limits.unauthenticatedPerAddress == 256)
  }

  @Test func `a bucket that becomes smaller or larger keeps what was used`() {
    var bucket = TokenBucket(burst: 10, perSecond: 1)
    for _ in 0..<4 { _ = bucket.take(now: .zero) }
    bucket.change(burst: 5, perSecond: 2)
    #expect(bucket.tokens == 1 && bucket.perSecond == 2)
    bucket.change(burst: 8, perSecond: 2)
    #expect(bucket.tokens == 4)
    bucket.change(burst: 1, perSecond: 2)
    #expect(bucket.tokens == 0)
  }
}
