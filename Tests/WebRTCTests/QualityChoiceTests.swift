import Base
import Testing
@testable import WebRTC

/// When a viewer by WebRTC gets a smaller video, and when the better one again.
@Suite struct QualityChoiceTests {
  private static func time(_ seconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  private static func videos(_ rates: Int64..., stopped: Set<Int> = []) -> [QualityChoice.Video] {
    rates.enumerated().map { QualityChoice.Video(bytesPerSecond: $1, isFresh: !stopped.contains($0)) }
  }

  @Test func `One hole is skipped, the second one leads to the next smaller video`() {
    var choice = QualityChoice(Self.time(0))
    let videos = Self.videos(500_000, 250_000, 50_000)
    #expect(choice.isSlow(0, videos, estimate: nil, now: Self.time(10)) == .skip)
    #expect(choice.isSlow(0, videos, estimate: nil, now: Self.time(12)) == .change(1))
    // Holes that lie far apart are accidents.
    #expect(choice.isSlow(1, videos, estimate: nil, now: Self.time(20)) == .skip)
    #expect(choice.isSlow(1, videos, estimate: nil, now: Self.time(51)) == .skip)
  }

  @Test func `A network that is known to be full leads at once to the video that it carries`() {
    var choice = QualityChoice(Self.time(0))
    let videos = Self.videos(500_000, 250_000, 50_000)
    #expect(choice.isSlow(0, videos, estimate: 100_000, now: Self.time(10)) == .change(2))
    var other = QualityChoice(Self.time(0))
    #expect(other.isSlow(0, videos, estimate: 300_000, now: Self.time(10)) == .change(1))
    #expect(other.isSlow(1, videos, estimate: 10_000, now: Self.time(11)) == .change(2), "the smallest that there is")
  }

  @Test func `Without a smaller video it skips five times in 30 s, then it is ended`() {
    var choice = QualityChoice(Self.time(0))
    // The second one has stopped, the third one is no smaller.
    let videos = Self.videos(500_000, 250_000, 600_000, stopped: [1])
    for second in 0..<Int64(WebRTCLimits.skips) {
      #expect(choice.isSlow(0, videos, estimate: 1000, now: Self.time(second)) == .skip)
    }
    #expect(choice.isSlow(0, videos, estimate: 1000, now: Self.time(6)) == .end)
    var alone = QualityChoice(Self.time(0))
    for second in 0..<Int64(WebRTCLimits.skips) {
      #expect(alone.isSlow(nil, [], estimate: nil, now: Self.time(second)) == .skip)
    }
    #expect(alone.isSlow(nil, [], estimate: nil, now: Self.time(6)) == .end)
  }

  @Test func `After a long calm it tries the better one, later each time that it fails`() {
    var choice = QualityChoice(Self.time(0))
    let videos = Self.videos(500_000, 250_000, 50_000)
    #expect(choice.isSlow(0, videos, estimate: 60_000, now: Self.time(10)) == .change(2))
    #expect(choice.rise(2, videos, now: Self.time(39)) == nil)
    #expect(choice.rise(2, videos, now: Self.time(40)) == 1)
    #expect(choice.isSlow(1, videos, estimate: 60_000, now: Self.time(45)) == .change(2))
    #expect(choice.rise(2, videos, now: Self.time(104)) == nil, "twice as long")
    #expect(choice.rise(2, videos, now: Self.time(105)) == 1)
    // It stayed.
    #expect(choice.rise(1, videos, now: Self.time(165)) == 0)
    #expect(choice.rise(0, videos, now: Self.time(1000)) == nil, "there is none")
    #expect(choice.isSlow(0, videos, estimate: 60_000, now: Self.time(1000)) == .change(2))
    #expect(choice.rise(2, Self.videos(500_000, 250_000, 50_000, stopped: [0, 1]), now: Self.time(2000)) == nil)
  }

  @Test func `Whose video has stopped goes to a smaller one, else to a larger one, else it waits or is ended`() {
    let rates: [Int64] = [500_000, 250_000, 50_000]
    func step(_ shown: Int?, fresh: Set<Int>, isLost: Bool = true) -> QualityChoice.Step? {
      let videos = rates.enumerated().map { QualityChoice.Video(bytesPerSecond: $1, isFresh: fresh.contains($0)) }
      return QualityChoice.afterStop(of: shown, videos, isLost: isLost)
    }
    #expect(step(0, fresh: [1, 2]) == .change(1) && step(1, fresh: [0, 2]) == .change(2))
    #expect(step(2, fresh: [0, 1]) == .change(1) && step(nil, fresh: [0, 1]) == .change(0))
    #expect(step(1, fresh: []) == .end)
    #expect(step(1, fresh: [], isLost: false) == nil, "its stream may only rest")
  }

  @Test func `A second fall leaves the patience as it is`() {
    var choice = QualityChoice(Self.time(0))
    let videos = Self.videos(500_000, 250_000, 50_000)
    #expect(choice.isSlow(0, videos, estimate: 300_000, now: Self.time(10)) == .change(1))
    #expect(choice.rise(1, videos, now: Self.time(40)) == 0)
    // The try fails, and what it falls to is too large by now as well.
    #expect(choice.isSlow(0, videos, estimate: 300_000, now: Self.time(45)) == .change(1))
    #expect(choice.isSlow(1, videos, estimate: 60_000, now: Self.time(50)) == .change(2))
    #expect(choice.rise(2, videos, now: Self.time(109)) == nil, "60 s, not 30")
    #expect(choice.rise(2, videos, now: Self.time(110)) == 1)
  }
}
