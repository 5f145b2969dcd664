@testable import Base
import Synchronization
import Testing

@Suite struct FairPoolTests {
  /// The units that were granted later, in order.
  private final class Granted: Sendable {
    private let list = Mutex<[String]>([])
    var all: [String] { list.withLock { $0 } }
    func grant(_ name: String) -> FairPool.Grant { { count in self.list.withLock { $0.append("\(name) \(count)") } } }
  }

  private static let kibibyte = 1024
  private let granted = Granted()

  /// In KiB.
  private func pool(_ limit: Int, least: Int, patience: Int = 10) -> FairPool {
    FairPool(limit: limit * Self.kibibyte, least: least * Self.kibibyte, patience: patience)
  }

  private func take(_ wanted: Int, for member: FairPool.Member, _ name: String = "") -> Int? {
    member.take(wanted * Self.kibibyte, orLater: granted.grant(name)).map { $0 / Self.kibibyte }
  }

  @Test func anAddressHasAtMostHalfOfWhatOthersLeaveAndItsFirstAsLongAsThereAreAny() {
    let pool = pool(1000, least: 100)
    let many = (0..<3).map { _ in pool.member(of: "a") }
    #expect(many.map { take(400, for: $0) } == [400, 100, nil])
    let others = (0..<6).map { pool.member(of: "b\($0)") }
    #expect(others.map { take(400, for: $0) } == [250, 125, 100, nil, nil, nil])
    #expect(granted.all.isEmpty)
  }

  @Test func whoWaitsGetsWhatIsGivenBackAndAddressesTakeTurns() {
    let pool = pool(200, least: 50)
    let first = pool.member(of: "a")
    let (second, third, other) = (pool.member(of: "a"), pool.member(of: "a"), pool.member(of: "b"))
    #expect(take(100, for: first) == 100)
    #expect(take(80, for: second, "2") == nil && take(80, for: third, "3") == nil)
    #expect(take(50, for: other) == 50)
    #expect(!second.takeNow(5 * Self.kibibyte), "who waits gets nothing in between")
    first.giveBack(100 * Self.kibibyte)
    #expect(granted.all == ["2 \(75 * Self.kibibyte)"])
    second.giveBack(75 * Self.kibibyte)
    third.giveBack(75 * Self.kibibyte)
    other.giveBack(50 * Self.kibibyte)
    #expect(granted.all.count == 2 && pool.held == 0)
  }

  @Test func ofManyAddressesThatWaitEachGetsOneInItsTurn() {
    let pool = pool(40, least: 10)
    let holder = pool.member(of: "h")
    let filler = pool.member(of: "f")
    #expect(take(20, for: holder) == 20 && take(10, for: filler) == 10)
    let last = pool.member(of: "l")
    #expect(take(10, for: last) == 10)
    let members = (0..<100).map { pool.member(of: "\($0 / 2)") }
    for (number, member) in members.enumerated() { #expect(take(10, for: member, "\(number)") == nil) }
    holder.giveBack(20 * Self.kibibyte)
    while let served = granted.all.last, granted.all.count < 100 {
      let before = granted.all.count
      members[Int(served.prefix { $0 != " " }) ?? 0].giveBack(10 * Self.kibibyte)
      guard granted.all.count > before else { break }
    }
    let order = granted.all.map { Int($0.prefix { $0 != " " }) ?? -1 }
    // The first of all keeps what it has.
    #expect(order == Array(stride(from: 0, to: 100, by: 2)) + Array(stride(from: 3, to: 100, by: 2)))
  }

  @Test func whoStopsWaitsNoLongerAndWhatItHeldComesBackWithIt() {
    let pool = pool(100, least: 10)
    let first = pool.member(of: "a")
    var second: FairPool.Member? = pool.member(of: "a")
    let third = pool.member(of: "a")
    #expect(take(50, for: first) == 50)
    #expect(second.map { take(50, for: $0, "2") } == .some(nil))
    #expect(take(10, for: third, "3") == nil)
    second?.stop()
    first.stop()
    #expect(pool.held == 50 * Self.kibibyte && granted.all.isEmpty)
    first.giveBack(50 * Self.kibibyte)
    #expect(granted.all == ["3 \(10 * Self.kibibyte)"])
    #expect(take(10, for: first) == nil && !first.takeNow(1))
    second = nil
    third.giveBack(10 * Self.kibibyte)
    var fourth: FairPool.Member? = pool.member(of: "a")
    #expect(fourth.map { take(20, for: $0) } == 20)
    fourth = nil
    #expect(pool.held == 0, "what is released gives back what it held")
  }

  @Test func fewUnitsPassThoseWhoWait() {
    let pool = pool(100, least: 30)
    let (large, waiting, small) = (pool.member(of: "a"), pool.member(of: "a"), pool.member(of: "a"))
    #expect(take(50, for: large) == 50 && take(30, for: waiting, "w") == nil)
    #expect(take(4, for: small) == 4 && small.takeNow(Self.kibibyte))
    #expect(take(5, for: small) == nil)
    // They have units of their own, which end as well.
    let others = (0..<40).map { pool.member(of: "\($0)") }
    let taken = others.count { $0.takeNow(4 * Self.kibibyte) }
    #expect(taken == (112 - 55) / 4 && pool.held <= 113 * Self.kibibyte)
  }

  @Test func anAddressHasItsShareOfFewUnitsToo() {
    let pool = pool(800, least: 16)
    let members = (0..<300).map { _ in pool.member(of: "a") }
    #expect(members.count { $0.takeNow(4 * Self.kibibyte) } == 900 / 2 / 4)
    let other = pool.member(of: "b")
    #expect(take(175, for: other) == 175)
  }

  @Test func whoStoppedDoesNotKeepTheNextFromTaking() {
    let pool = pool(100, least: 10)
    let (holder, stopped, next) = (pool.member(of: "a"), pool.member(of: "a"), pool.member(of: "a"))
    #expect(take(50, for: holder) == 50 && take(50, for: stopped) == nil)
    holder.giveBack(5 * Self.kibibyte)
    #expect(granted.all.isEmpty, "these are too few for it")
    stopped.stop()
    #expect(take(5, for: next) == 5)
  }

  @Test func aClaimThatIsRefusedCallsInWhoTakesNothing() {
    let pool = pool(1000, least: 16, patience: 3)
    let (silent, slow) = (pool.member(of: "a"), pool.member(of: "a"))
    #expect(silent.claim(300 * Self.kibibyte) && slow.claim(200 * Self.kibibyte))
    for _ in 0..<5 { pool.look() }
    #expect(!silent.isCalledIn, "nobody wants it")
    for _ in 0..<3 {
      #expect(!pool.member(of: "a").claim(Self.kibibyte))
      slow.progress(16 * Self.kibibyte)
      pool.look()
    }
    #expect(silent.isCalledIn && !slow.isCalledIn)
    #expect(pool.member(of: "b").claim(500 * Self.kibibyte), "the first of an address has what is left")
  }

  /// Somebody waits: the newest that keep what they have go, of the address of such that holds most, as many as addresses wait.
  @Test func whoKeepsItLongIsCalledInWhileOthersWait() {
    let pool = pool(1000, least: 10, patience: 3)
    let busy = pool.member(of: "busy")
    let members = (0..<3).map { _ in pool.member(of: "a") }
    #expect(take(400, for: busy) == 400)
    for member in members { #expect(take(100, for: member) == 100) }
    for _ in 0..<5 { pool.look() }
    #expect(!members.contains { $0.isCalledIn }, "nobody waits")
    let waiting = pool.member(of: "a")
    #expect(take(100, for: waiting, "w") == nil)
    pool.look()
    busy.giveBack(10 * Self.kibibyte)
    members[2].giveBack(1)
    for _ in 0..<2 { pool.look() }
    #expect(members.map(\.isCalledIn) == [false, false, true], "a byte is next to nothing")
    #expect(!busy.isCalledIn, "it holds most, and gives back")
    members[2].restart()
    #expect(!members[2].isCalledIn, "a disk has delayed it")
    members[2].giveBack(100 * Self.kibibyte)
    #expect(!members[2].isCalledIn && granted.all.count == 1)
  }

  @Test func ofASingleUnitSomebodyHasIt() {
    let pool = FairPool(limit: 1, least: 1)
    let (first, second) = (pool.member(of: "a"), pool.member(of: "b"))
    #expect(first.take(1, orLater: granted.grant("a")) == 1)
    #expect(second.take(1, orLater: granted.grant("b")) == nil)
    first.giveBack(1)
    #expect(granted.all == ["b 1"])
  }
}
