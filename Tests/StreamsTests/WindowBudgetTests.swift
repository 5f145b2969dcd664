import Base
import Publishing
@testable import Streams
import Synchronization
import Testing

@Suite struct WindowBudgetTests {
  private let budget = WindowBudget(perStream: 100, inAll: 200)

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  @Test func aStreamMayKeepWhatIsForOne() throws {
    #expect(try budget.hold(150, by: name("a")).bytes == 100)
    #expect(try budget.hold(100, by: name("a")).bytes == 100)
    #expect(budget.used == 100)
  }

  @Test func whoHasMoreThanItsShareGoesFirst() throws {
    _ = try budget.hold(100, by: name("a"))
    _ = try budget.hold(90, by: name("b"))
    #expect(try budget.hold(10, by: name("c")).bytes == 100)
    // 10 too many; a third of 200 is the share of each.
    #expect(try budget.hold(100, by: name("b")).bytes == 90)
    // 100 too many: down to the share, and no further.
    #expect(try budget.hold(190, by: name("b")).bytes == 90)
  }

  @Test func anIdleStreamIsAskedOnceForWhatASmallOneNeeds() throws {
    let asked = Mutex<[String]>([])
    budget.onShortage { name, bytes in asked.withLock { $0.append("\(name) \(bytes)") } }
    _ = try budget.hold(100, by: name("a"))
    _ = try budget.hold(60, by: name("b"))
    #expect(asked.withLock { $0 } == [])
    #expect(try budget.hold(50, by: name("c")).bytes == 100)
    #expect(try budget.hold(55, by: name("c")).bytes == 100)
    #expect(asked.withLock { $0 } == ["a 90"])
    _ = try budget.hold(90, by: name("a"))
    _ = try budget.hold(60, by: name("c"))
    #expect(asked.withLock { $0 } == ["a 90", "a 80"])
  }

  @Test func theLargestPaysThoughWhoCallsHasTooMuchToo() throws {
    let asked = Mutex<[String]>([])
    budget.onShortage { name, bytes in asked.withLock { $0.append("\(name) \(bytes)") } }
    _ = try budget.hold(100, by: name("a"))
    _ = try budget.hold(70, by: name("b"))
    _ = try budget.hold(20, by: name("c"))
    #expect(try budget.hold(90, by: name("b")).bytes == 100)
    #expect(asked.withLock { $0 } == ["a 90"])
    // Beyond a sixteenth too much no window waits for the largest.
    #expect(try budget.hold(95, by: name("b")).bytes == 80)
    #expect(try budget.hold(60, by: name("c")).bytes == 100)
  }

  @Test func allNamesOfAnAddressWithoutAKeyHaveOneShare() throws {
    let asked = Mutex<[Int]>([])
    budget.onShortage { _, bytes in asked.withLock { $0.append(bytes) } }
    for number in 0..<10 { _ = try budget.hold(15, by: name("n\(number)"), of: "192.0.2.1") }
    // Ten too many: half is the share of each of the two.
    #expect(try budget.hold(60, by: name("honest"), of: "192.0.2.2").bytes == 100)
    // The ten keep 140 together, each a tenth.
    #expect(asked.withLock { $0 } == [14])
    #expect(try budget.hold(20, by: name("n3"), of: "192.0.2.1").bytes == 14)
    // Beyond their share they go down to it, and no further.
    #expect(try budget.hold(100, by: name("honest"), of: "192.0.2.2").bytes == 100)
    #expect(try budget.hold(60, by: name("n3"), of: "192.0.2.1").bytes == 10)
    // With a key a stream is by itself; far too much is kept, and it has more than a third.
    #expect(try budget.hold(100, by: name("n3")).bytes == 66)
    try budget.release(name("honest"))
    for number in [0, 1, 2, 4, 5, 6, 7, 8, 9] { try budget.release(name("n\(number)")) }
    #expect(budget.used == 100)
  }

  @Test func onlyWhoIsBeyondItsShareHasItsSegmentsCutSmall() throws {
    let budget = WindowBudget(perStream: 64 << 20, inAll: 128 << 20)
    for number in 0..<3 { _ = try budget.hold(30 << 20, by: name("n\(number)"), of: "192.0.2.1") }
    #expect(try budget.hold(10 << 20, by: name("honest"), of: "192.0.2.2").segmentBytes == 16 << 20)
    #expect(try budget.hold(30 << 20, by: name("n0"), of: "192.0.2.1").segmentBytes == 1 << 20)
  }

  @Test func whatAForgottenStreamKeptIsFree() throws {
    _ = try budget.hold(80, by: name("a"))
    try budget.release(name("a"))
    #expect(budget.used == 0)
  }

  @Test func growingSegmentsAreSmallerWhereMemoryIsShort() throws {
    let budget = WindowBudget(perStream: 64 << 20, inAll: 128 << 20)
    #expect(try budget.hold(0, by: name("a")).segmentBytes == 16 << 20)
    _ = try budget.hold(60 << 20, by: name("b"))
    _ = try budget.hold(10 << 20, by: name("c"))
    #expect(try budget.hold(0, by: name("d")).segmentBytes == 8 << 20)
    #expect(try WindowBudget(perStream: 16 << 20, inAll: 16 << 20).hold(0, by: name("a")).segmentBytes == 4 << 20)
  }

  /// Of media that came too slowly for their length.
  @Test func aLimitThatWasSetIsTheOnlyOne() {
    let found = MemorySources().read()?.limit ?? 4 << 30
    #expect(WindowBudget(perStream: nil, inAll: nil).slowMedia == min(32 << 20, found / 8))
    #expect(WindowBudget(perStream: 64 << 20, inAll: nil).slowMedia == .max)
  }

  @Test func byDefaultAStreamHasAQuarterOfTheMemory() {
    let found = MemorySources().read()?.limit ?? 4 << 30
    let budget = WindowBudget(perStream: nil, inAll: nil)
    #expect(budget.perStream == found / 4 && budget.inAll == found / 2)
    #expect(WindowBudget(perStream: nil, inAll: 10).perStream == 10)
  }
}
