import Synchronization
import Testing

@testable import Server

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
      #expect(viewers == min(budget.viewers, limit - min(128, limit / 4) - budget.strangers))
      #expect(streams == budget.streams)
      // Viewers are let go for streams; without them it all fits, with room for the rest.
      #expect(streams + budget.strangers < limit)
      #expect(!budget.takeViewer())
    }
  }

  @Test func viewersAreLetGoForStreams() {
    let budget = DescriptorBudget(limit: 600)
    let shed = Mutex(0)
    budget.onShortage { count in shed.withLock { $0 += count } }
    for _ in 0..<344 { #expect(budget.takeViewer()) }
    #expect(!budget.takeViewer())
    // 600 less 128 less 37 strangers: 91 are left.
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
}
