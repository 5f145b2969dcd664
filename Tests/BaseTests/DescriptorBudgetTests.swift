import Base
import Synchronization
import Testing

@Suite struct DescriptorBudgetTests {
  /// Few descriptors are shared by halves, of many some are kept for streams.
  @Test(arguments: [(1, 1), (22, 11), (256, 128), (512, 256), (600, 344), (1024, 768)])
  func viewersHaveWhatStreamsDoNotNeed(_ descriptors: Int, _ viewers: Int) {
    let budget = DescriptorBudget(limit: descriptors)
    #expect(budget.viewers == viewers)
    #expect(budget.streams >= 1)
  }

  @Test func nothingIsHandedOutThatIsNotThere() {
    for limit in [8, 64, 600, 1024, 65_536] {
      let budget = DescriptorBudget(limit: limit)
      var (viewers, streams) = (0, 0)
      while budget.takeViewer() { viewers += 1 }
      while budget.takeStream(1) { streams += 1 }
      #expect(viewers == min(budget.viewers, limit - min(128, limit / 4) - budget.unauthenticated))
      #expect(streams == budget.streams)
      // Viewers are let go for streams; without them it all fits, with room for the rest.
      #expect(streams + budget.unauthenticated < limit)
      #expect(!budget.takeViewer())
    }
  }

  /// An idle server has 18 open.
  @Test(arguments: [(64, 44), (96, 72), (128, 96), (1024, 896)])
  func connectionsLeaveTheServerWhatItNeeds(_ descriptors: Int, _ connections: Int) {
    #expect(DescriptorBudget(limit: descriptors).connections == connections)
  }

  @Test func viewersAreLetGoForStreams() {
    let budget = DescriptorBudget(limit: 600)
    let shed = Mutex(0)
    budget.onShortage { count in shed.withLock { $0 += count } }
    for _ in 0..<344 { #expect(budget.takeViewer()) }
    #expect(!budget.takeViewer())
    // 600 less 128 less 37 connections that have not published yet: 91 are left.
    for _ in 0..<18 { #expect(budget.takeStream(5)) }
    #expect(shed.withLock { $0 } == 0)
    #expect(budget.takeStream(5))
    #expect(shed.withLock { $0 } == 4)
    #expect(budget.takeStream(5), "it asks for its own alone while the first four have not gone yet")
    #expect(shed.withLock { $0 } == 9)
    for _ in 0..<9 { budget.giveBackViewer() }
    #expect(!budget.takeViewer(), "what was freed is the streams'")
    #expect(!budget.takeStream(1000))
    for _ in 0..<20 { budget.giveBackStream(5) }
    #expect(budget.takeViewer())
    #expect(budget.taken == (336, 0))
  }

  /// A name that is looked up takes two, of the same eighth as files.
  @Test func looksForNamesAreCounted() {
    let budget = DescriptorBudget(limit: 600)
    var looks = 0
    while budget.takeLook() { looks += 1 }
    #expect(looks == 27)
    #expect(!budget.takeFile(.reading) && !budget.takeFile(.rewinding))
    var viewers = 0
    while budget.takeViewer() { viewers += 1 }
    #expect(viewers == 344, "they have their own share")
    budget.giveBackLook()
    #expect(budget.takeLook() && !budget.takeLook())
  }

  @Test func looksForNamesLeaveStreamsTheirs() async {
    let budget = DescriptorBudget(limit: 64)
    while budget.takeLook() {}
    while budget.takeStream(1) {}
    #expect(budget.taken.streams == budget.streams)
    #expect(await budget.areFree(patience: .zero), "nothing was handed out that is not there")
  }

  /// Files take what viewers may have, and an eighth of all at most.
  @Test func filesAreReadWhereThereIsRoomBesideViewers() {
    let budget = DescriptorBudget(limit: 600)
    #expect(budget.files == 54)
    for _ in 0..<54 { #expect(budget.takeFile(.reading)) }
    #expect(!budget.takeFile(.reading) && !budget.takeFile(.rewinding))
    #expect(budget.takeLook() && !budget.takeLook(), "one look has room beside all files")
    budget.giveBackLook()
    for _ in 0..<(344 - 54) { #expect(budget.takeViewer()) }
    #expect(!budget.takeViewer())
    budget.giveBackFile(.reading)
    #expect(budget.takeViewer())
    #expect(!budget.takeFile(.reading), "a viewer has its place")
    #expect(budget.takeFile(.rewinding))
    // Streams come before both, and find no more than is there.
    while budget.takeStream(1) {}
    #expect(budget.taken.streams + budget.files <= 600 - 128 - budget.unauthenticated)
  }

  @Test func halfOfTheFilesCanBeForRewinding() {
    let budget = DescriptorBudget(limit: 600)
    for _ in 0..<27 { #expect(budget.takeFile(.rewinding)) }
    #expect(!budget.takeFile(.rewinding))
    #expect(budget.takeFile(.reading))
  }

  @Test func aStreamWaitsUntilViewersHaveGone() async throws {
    let budget = DescriptorBudget(limit: 64)
    #expect(await budget.areFree())
    while budget.takeViewer() {}
    while budget.taken.streams + budget.taken.viewers < 44 { #expect(budget.takeStream(1)) }
    #expect(await budget.areFree())
    #expect(budget.takeStream(2))
    #expect(await !budget.areFree(patience: .milliseconds(50)))
    budget.giveBackViewer()
    let wait = Task { await budget.areFree(patience: .seconds(20)) }
    try await Task.sleep(for: .milliseconds(30))
    budget.giveBackViewer()
    #expect(await wait.value)
  }
}
