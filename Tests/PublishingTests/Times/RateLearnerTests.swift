@testable import Publishing
import FMP4
import Testing

@Suite("A rate that is learned from times")
struct RateLearnerTests {
  /// What is learned of frames of this rate whose times the wire rounds to milliseconds, and after how many.
  private func learn(
    _ rate: FrameRate, upTo count: Int64 = 2000, start: Int64 = 0
  ) -> (rate: FrameRate, frames: Int64)? {
    var learner = RateLearner()
    for frame in 0..<count {
      let milliseconds = MediaTime(
        ticks: frame * Int64(rate.denominator), timescale: rate.numerator
      ).rescaled(to: 1000)
      if let found = learner.learn((start + milliseconds) * 1_000_000) { return (found, frame + 1) }
    }
    return nil
  }

  @Test(arguments: FrameClock.commonRates.filter { $0.framesPerSecond <= 120 })
  func `Every common rate is told from its neighbours`(_ rate: FrameRate) throws {
    let found = try #require(learn(rate))
    #expect(found.rate == rate)
    // Four seconds, and sixteen frames at least.
    #expect(Double(found.frames - 1) >= 4 * rate.framesPerSecond - 1 && found.frames >= 16)
    #expect(Double(found.frames) <= 4.5 * rate.framesPerSecond + 2)
  }

  @Test func `It does not matter when the stream began`() throws {
    let rate = try #require(FrameRate(numerator: 30_000, denominator: 1001))
    for start in [1, 999, 123_457, 86_400_000] as [Int64] { #expect(learn(rate, start: start)?.rate == rate) }
  }

  @Test func `A frame that is left out now and then changes nothing`() throws {
    var learner = RateLearner()
    var found: FrameRate?
    for frame in 0..<300 as Range<Int64> where frame % 7 != 3 && found == nil {
      found = learner.learn(frame * 40 * 1_000_000)
    }
    #expect(found == FrameRate(numerator: 25, denominator: 1))
  }

  @Test func `Times that keep to no rate are never believed`() {
    var learner = RateLearner()
    var time: Int64 = 0
    for frame in 0..<3000 as Range<Int64> {
      time += 20 + frame * 7919 % 37
      #expect(learner.learn(time * 1_000_000) == nil, "\(frame)")
    }
  }

  @Test func `Times that stand still or go back teach nothing`() {
    var learner = RateLearner()
    for frame in 0..<500 as Range<Int64> {
      #expect(learner.learn(5_000_000_000) == nil)
      #expect(learner.learn(-frame * 40_000_000) == nil)
    }
    #expect(learner.learn(.max) == nil && learner.learn(.min) == nil)
  }
}
