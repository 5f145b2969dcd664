@testable import FMP4
import Testing

@Suite struct GOPCadenceTests {
  /// After each distance, the one that is predicted.
  private static func predicted(_ distances: [Int64]) -> [Int64?] {
    var cadence = GOPCadence()
    var time: Int64 = 0
    _ = cadence.note(syncAt: time, timescale: 30_000)
    return distances.map { distance in
      time += distance
      _ = cadence.note(syncAt: time, timescale: 30_000)
      return cadence.steadyGroup
    }
  }

  @Test func aSteadyDistanceIsPredicted() {
    #expect(Self.predicted([60_000, 60_000, 60_001, 60_000]) == [nil, 60_000, 60_001, 60_000])
  }

  @Test func oneThatWasPredictedWronglyIsProvedLonger() {
    let before: [Int64] = [60_000, 60_000, 59_000]
    #expect(Self.predicted(before) == [nil, 60_000, nil])
    let after = Self.predicted(before + Array(repeating: 60_000, count: 9)).dropFirst(3)
    #expect(Array(after) == Array(repeating: nil, count: 7) + [60_000, 60_000])
    // Now one, now another: nothing is predicted for long.
    let unsteady = Self.predicted((0..<300).map { $0 % 7 < 3 ? 60_000 : 59_000 })
    #expect(unsteady.count { $0 != nil } < 6)
  }

  @Test func oneThatVariesFromTheStartIsNotPredicted() {
    #expect(Self.predicted([60_000, 59_000, 60_000, 59_000]).allSatisfy { $0 == nil })
  }
}
