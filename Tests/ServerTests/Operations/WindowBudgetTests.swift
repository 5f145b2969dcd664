import Ingest
import Synchronization
import Testing

@testable import Server

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
    // 10 too many; a third of 200 is everybody's share.
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

  @Test func byDefaultAStreamHasAQuarterOfTheMemory() {
    let found = MemorySources().read()?.limit ?? 4 << 30
    let budget = WindowBudget(perStream: nil, inAll: nil)
    #expect(budget.perStream == found / 4 && budget.inAll == found / 2)
    #expect(WindowBudget(perStream: nil, inAll: 10).perStream == 10)
  }
}
