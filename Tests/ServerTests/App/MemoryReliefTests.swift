@testable import Server
import Testing

@Suite struct MemoryReliefTests {
  /// The numbers of the looks at which connections should end.
  private func due(_ missing: [Int]) -> [Int] {
    var relief = MemoryRelief()
    return missing.indices.filter { relief.isDue(missing: missing[$0]) }
  }

  @Test func itRestsBetweenTwoTimes() {
    #expect(due([0, 0]) == [])
    #expect(due((0..<12).map { 100 - $0 }) == [0, 5, 10])
  }

  @Test func whereItDoesNotHelpItStopsUntilThereIsMemoryAgain() {
    #expect(due([Int](repeating: 100, count: 40)) == [0, 5])
    #expect(due([Int](repeating: 100, count: 20) + [0, 100]) == [0, 5, 21])
  }
}
