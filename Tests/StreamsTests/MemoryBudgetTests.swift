@testable import Base
import Glibc
import Logging
import Streams
import Testing

@Suite struct MemoryBudgetTests {
  /// A folder like a control group's, of either version, whose files tests write.
  private final class Group {
    let folder: String

    init() throws {
      var path = Array("/tmp/weir-group-XXXXXX".utf8CString)
      folder = try #require(mkdtemp(&path).map { String(cString: $0) })
      mkdir(folder + "/memory", 0o755)
    }

    /// In MiB.
    func set(limit: Int?, usage: Int, reclaimable: Int = 0) throws {
      try write(limit.map { "\($0 << 20)" } ?? "max", to: ["memory.max", "memory/memory.limit_in_bytes"])
      try write("\(usage << 20)", to: ["memory.current", "memory/memory.usage_in_bytes"])
      try write(
        "anon 1\ninactive_file \(reclaimable << 20)\ntotal_inactive_file \(reclaimable << 20)\n",
        to: ["memory.stat", "memory/memory.stat"])
    }

    private func write(_ text: String, to names: [String]) throws {
      for name in names {
        let file = try #require(fopen("\(folder)/\(name)", "w"))
        fputs(text + "\n", file)
        fclose(file)
      }
    }

    func remove() {
      for name in ["memory.max", "memory.current", "memory.stat"] { unlink("\(folder)/\(name)") }
      for name in ["limit_in_bytes", "usage_in_bytes", "stat"] { unlink("\(folder)/memory/memory.\(name)") }
      rmdir(folder + "/memory")
      rmdir(folder)
    }
  }

  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  @Test func theTightestLimitCountsAndFilesThatCanBeGivenBackAreFree() throws {
    let group = try Group()
    defer { group.remove() }
    try group.set(limit: 256, usage: 100, reclaimable: 40)
    let sources = MemorySources(root: group.folder)
    #expect(sources.read() == MemorySources.Reading(limit: 256 << 20, available: 196 << 20))
    // Without a limit of the group's the machine's memory is what there is.
    try group.set(limit: nil, usage: 100)
    #expect(try #require(sources.read()).limit > 256 << 20)
  }

  @Test func theLeastLimitCountsThoughAnotherLevelHasLessAvailable() throws {
    let group = try Group()
    defer { group.remove() }
    // More could be given back than the machine has free: of all levels the machine has the least available.
    try group.set(limit: 256, usage: 0, reclaimable: 1 << 24)
    let sources = MemorySources(root: group.folder)
    let reading = try #require(sources.read())
    #expect(reading.limit == 256 << 20 && reading.available < 1 << 44)
    #expect(WindowBudget(perStream: nil, inAll: nil, sources: sources).inAll == 128 << 20)
  }

  @Test func connectionsAreRefusedBeforeMemoryIsGoneAndAdmittedWhenThereIsSome() throws {
    let group = try Group()
    defer { group.remove() }
    try group.set(limit: 256, usage: 100)
    let budget = MemoryBudget(sources: MemorySources(root: group.folder), logger: logger)
    var admitted = 0
    while admitted < 10_000, budget.take(MemoryBudget.secureConnectionBytes) != nil { admitted += 1 }
    // 156 MiB are left, of which an eighth of 256 are kept.
    #expect(admitted == (124 << 20) / MemoryBudget.secureConnectionBytes)
    #expect(budget.take(MemoryBudget.secureConnectionBytes) == nil)
    // What was admitted just now counts in full, though it shows nowhere yet.
    budget.look(expectedGrowth: 0)
    #expect(budget.take(MemoryBudget.secureConnectionBytes) == nil)
    // Later it shows in what the system counts, which is less.
    try group.set(limit: 256, usage: 150)
    for _ in 0..<12 { budget.look(expectedGrowth: 0) }
    #expect(budget.take(MemoryBudget.secureConnectionBytes) != nil)
    // What windows will still need is left aside.
    budget.look(expectedGrowth: 100 << 20)
    #expect(budget.take(MemoryBudget.plainConnectionBytes) == nil)
  }

  @Test func memoryIsTightWhereLessThanAThirdIsLeft() throws {
    let group = try Group()
    defer { group.remove() }
    try group.set(limit: 3000, usage: 1990)
    let budget = MemoryBudget(sources: MemorySources(root: group.folder), logger: logger)
    #expect(!budget.isTight)
    try group.set(limit: 3000, usage: 2010)
    budget.look(expectedGrowth: 0)
    #expect(budget.isTight)
    try group.set(limit: 1000, usage: 0)
    budget.look(expectedGrowth: 0)
    #expect(budget.isTight, "there is little at all")
  }

  @Test func whatIsMissingIsToldWhereHalfOfTheReserveIsUsedUp() throws {
    let group = try Group()
    defer { group.remove() }
    try group.set(limit: 1024, usage: 950)
    let budget = MemoryBudget(sources: MemorySources(root: group.folder), logger: logger)
    #expect(budget.limit == 1024 << 20)
    #expect(budget.look(expectedGrowth: 0) == 0)
    try group.set(limit: 1024, usage: 1000)
    #expect(budget.look(expectedGrowth: 0) == (64 - 24) << 20)
  }

  @Test func whoComesAndGoesTakesNothing() throws {
    let group = try Group()
    defer { group.remove() }
    try group.set(limit: 256, usage: 100)
    let budget = MemoryBudget(sources: MemorySources(root: group.folder), logger: logger)
    for turn in 0..<10_000 {
      let charge = try #require(budget.take(MemoryBudget.secureConnectionBytes))
      // Some stay over a few looks.
      if turn % 100 == 0 { for _ in 0..<turn / 1000 { budget.look(expectedGrowth: 0) } }
      budget.giveBack(charge)
    }
    var admitted = 0
    while admitted < 10_000, budget.take(MemoryBudget.secureConnectionBytes) != nil { admitted += 1 }
    #expect(admitted == (124 << 20) / MemoryBudget.secureConnectionBytes)
  }
}
