import Synchronization
import Testing

@testable import Basics

@Suite struct FairPoolTests {
  /// The units that were granted later, in order.
  private final class Granted: Sendable {
    private let list = Mutex<[String]>([])
    var all: [String] { list.withLock { $0 } }
    func grant(_ name: String) -> FairPool.Grant { { count in self.list.withLock { $0.append("\(name) \(count)") } } }
  }

  @Test func anAddressHasAtMostHalfOfWhatOthersLeave() {
    let pool = FairPool(limit: 1000, least: 100)
    let granted = Granted()
    let many = (0..<3).map { _ in pool.member(of: "a") }
    #expect(many[0].take(400, orLater: granted.grant("0")) == 400)
    #expect(many[1].take(400, orLater: granted.grant("1")) == 100)
    #expect(many[2].take(400, orLater: granted.grant("2")) == nil)
    let other = pool.member(of: "b")
    #expect(other.take(400, orLater: granted.grant("b")) == 250)
    #expect(!other.takeNow(1) || pool.held == 751)
    #expect(granted.all.isEmpty)
  }

  @Test func whoWaitsGetsWhatIsGivenBackAndAddressesTakeTurns() {
    let pool = FairPool(limit: 200, least: 50)
    let granted = Granted()
    let first = pool.member(of: "a")
    let (second, third, other) = (pool.member(of: "a"), pool.member(of: "a"), pool.member(of: "b"))
    #expect(first.take(100, orLater: granted.grant("1")) == 100)
    #expect(second.take(80, orLater: granted.grant("2")) == nil)
    #expect(third.take(80, orLater: granted.grant("3")) == nil)
    #expect(other.take(50, orLater: granted.grant("b")) == 50)
    #expect(!second.takeNow(1), "who waits gets nothing in between")
    first.giveBack(100)
    #expect(granted.all == ["2 75"])
    second.leave()
    #expect(granted.all == ["2 75", "3 75"])
    third.giveBack(75)
    other.giveBack(50)
    #expect(pool.held == 0)
  }

  @Test func whoHasLeftHoldsAndGetsNothing() {
    let pool = FairPool(limit: 100, least: 10)
    let granted = Granted()
    let first = pool.member(of: "a")
    var second: FairPool.Member? = pool.member(of: "a")
    #expect(first.take(50, orLater: granted.grant("1")) == 50)
    #expect(second?.take(50, orLater: granted.grant("2")) == .some(nil))
    second = nil
    first.leave()
    first.leave()
    #expect(granted.all.isEmpty && pool.held == 0)
    #expect(first.take(10, orLater: granted.grant("1")) == nil && !first.takeNow(10))
  }

  @Test func fewUnitsAreGivenOnlyToWhoWantsFew() {
    let pool = FairPool(limit: 100, least: 30)
    let granted = Granted()
    let (large, small) = (pool.member(of: "a"), pool.member(of: "a"))
    #expect(large.take(40, orLater: granted.grant("1")) == 40)
    #expect(small.takeNow(10))
    #expect(small.take(30, orLater: granted.grant("2")) == nil)
  }

  /// Somebody waits: the newest that keep what they have go, of the address with most, as many as addresses wait.
  @Test func whoKeepsItLongIsCalledInWhileOthersWait() {
    let pool = FairPool(limit: 1000, least: 100, patience: 3)
    let granted = Granted()
    let members = (0..<5).map { _ in pool.member(of: "a") }
    for member in members { #expect(member.takeNow(100)) }
    for _ in 0..<5 { pool.look() }
    #expect(!members.contains { $0.isCalledIn }, "nobody waits")
    let waiting = pool.member(of: "a")
    #expect(waiting.take(100, orLater: granted.grant("w")) == nil)
    pool.look()
    members[4].giveBack(0)
    members[4].giveBack(50)
    #expect(members[4].takeNow(50) == false, "others of its address wait")
    for _ in 0..<2 { pool.look() }
    #expect(members.map(\.isCalledIn) == [false, false, false, true, false])
    members[3].leave()
    #expect(granted.all == ["w 100"])
  }

  /// However many addresses wait, nobody is passed over.
  @Test func everyAddressGetsItsTurn() {
    let pool = FairPool(limit: 40, least: 10)
    let granted = Granted()
    let holder = pool.member(of: "h")
    #expect(holder.take(20, orLater: granted.grant("h")) == 20)
    let members = (0..<50).map { pool.member(of: "\($0)") }
    for (number, member) in members.enumerated() {
      if member.take(10, orLater: granted.grant("\(number)")) != nil { member.giveBack(10) }
    }
    var held = pool.held
    while held > 0 {
      holder.leave()
      for member in members { member.giveBack(10) }
      held = pool.held
    }
    #expect(Set(granted.all).count == granted.all.count)
  }
}
