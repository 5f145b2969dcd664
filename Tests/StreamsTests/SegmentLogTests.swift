import FMP4
import Storage
@testable import Streams
import Support
import Testing

@Suite struct SegmentLogTests {
  private func segment(_ number: Int) throws -> LiveSegment {
    let memory = try SegmentMemory(in: SegmentStore(name: "test"))
    return LiveSegment(
      sequenceNumber: number, initVersion: 1, followsDiscontinuity: false, isIndependent: true, start: .zero,
      wallStart: 0, memory: memory, expectedDuration: nil, expectedFollowersEnd: nil, duration: .zero)
  }

  /// Pieces hold 128.
  @Test func segmentsComeAtTheEndAndGoAtTheFront() throws {
    var log = SegmentLog()
    let one = try segment(0)
    var next = 0
    var first = 0
    func numbers() -> [Int] { log.map { Int($0.wallStart.nanoseconds) } }
    for (appended, removed) in [(1, 1), (127, 127), (129, 1), (300, 128), (1, 256), (0, 45), (130, 100)] {
      for _ in 0..<appended {
        var segment = one
        segment.wallStart = .at(Int64(next))
        log.append(segment)
        next += 1
      }
      log.removeFirst(removed)
      first += removed
      #expect(numbers() == Array(first..<next))
      #expect(log.reversed().map { Int($0.wallStart.nanoseconds) } == (first..<next).reversed())
      #expect(log.isEmpty == (first == next))
    }
  }

  @Test func aCopyKeepsWhatItHad() throws {
    var log = SegmentLog(try (1...200).map(segment))
    let copy = log
    log[199].wallStart = 7
    log[0].wallStart = 7
    log.removeFirst(150)
    log.append(try segment(201))
    #expect(copy.map(\.sequenceNumber) == Array(1...200) && copy.allSatisfy { $0.wallStart == 0 })
    #expect(log.map(\.sequenceNumber) == Array(151...201) && log[49].wallStart == 7)
    #expect(log[10...].prefix(2).map(\.sequenceNumber) == [161, 162])
  }
}
