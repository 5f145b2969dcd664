import Base
import FMP4
@testable import Local
import Support
import Testing

@Suite struct CameraStateTests {
  private static let rate = FrameRate(numerator: 30, denominator: 1)
  private static let step: Int64 = 33_333_333

  /// Frames counted as lost, of a driver that numbers them like this, each so many steps after the last.
  private func lost(_ frames: [(sequence: UInt32, steps: Int64)]) throws -> [Int64] {
    var memory = CameraState()
    var time: MonotonicTime = 1_000_000_000
    let rate = try #require(Self.rate)
    return frames.map { frame in
      time += frame.steps * Self.step
      return memory.lost(before: frame.sequence, at: time, rate: rate)
    }
  }

  @Test func whatTheDriverLeftOutIsCounted() throws {
    #expect(try lost([(7, 0), (8, 1), (11, 3), (12, 1)]) == [0, 0, 2, 0])
    // A process that was stopped for ten seconds.
    #expect(try lost([(7, 0), (307, 300)]) == [0, 299])
  }

  @Test func theCountGoesRound() throws {
    #expect(try lost([(.max - 1, 0), (.max, 1), (0, 1), (2, 2)]) == [0, 0, 0, 1])
  }

  @Test func aCountThatBeginsAnewLosesNothing() throws {
    #expect(try lost([(0, 0), (400, 1), (401, 1)]) == [0, 0, 0])
    #expect(try lost([(400, 0), (0, 1), (1, 1)]) == [0, 0, 0])
  }
}
