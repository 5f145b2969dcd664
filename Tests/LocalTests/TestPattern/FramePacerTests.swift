import Base
@testable import Local
import Support
import Testing

@Suite struct FramePacerTests {
  private static let second: Int64 = 1_000_000_000
  private let rate = TestSourceSettings.FrameRate(timescale: 30000, frameDuration: 1001)

  @Test func eachFrameIsDueAtItsExactTimeForHours() {
    var pacer = FramePacer(start: 5, rate: rate)
    var now: MonotonicTime = 5
    var worst: Int64 = 0
    var missed = 0
    for frame in 0..<Int64(400_000) {
      let due = MonotonicTime.at(5 + Int64((Double(frame) * 1001 / 30000 * 1e9).rounded()))
      if case .wait(let nanoseconds) = pacer.step(now: now) { now += nanoseconds } else if frame > 0 { missed += 1 }
      worst = max(worst, abs(now &- due))
      if frame > 0, pacer.step(now: now) != .frame(frame) { missed += 1 }
    }
    #expect(missed == 0)
    #expect(worst <= 1, "nanoseconds off the grid after 3.7 hours")
    #expect(pacer.dropped == 0)
  }

  @Test func aHiccupCostsNoFrame() {
    var pacer = FramePacer(start: 0, rate: rate)
    let now = MonotonicTime.at(FramePacer.nanosecondsLatePerDrop - 1)
    for frame in 0..<Int64(6) { #expect(pacer.step(now: now) == .frame(frame)) }
    #expect(pacer.dropped == 0)
  }

  @Test(arguments: [1.5, 2.0, 3.0, 5.0])
  func aSlowMachineDropsEvenlyAndStaysWithinABound(slowness: Double) throws {
    var pacer = FramePacer(start: 0, rate: rate)
    var now: MonotonicTime = 0
    var frames: [Int64] = []
    while now < .at(60 * Self.second) {
      switch pacer.step(now: now) {
      case .wait(let nanoseconds): now += nanoseconds
      case .frame(let frame):
        frames.append(frame)
        let due = Double(frame) * 1001 / 30000 * 1e9
        #expect(Double(now.nanoseconds) - due < Double(FramePacer.nanosecondsLatePerDrop) * slowness + 1e8)
        now += Int64(slowness * 1001 / 30000 * 1e9)
      case .frameAfterBreak(let frame):
        Issue.record("a break at frame \(frame)")
        return
      }
    }
    let settled = frames.suffix(frames.count / 2)
    let gaps = zip(settled, settled.dropFirst()).map { $1 - $0 }
    #expect(try #require(gaps.max()) - #require(gaps.min()) <= 1, "gaps from \(gaps.min() ?? 0) to \(gaps.max() ?? 0)")
    #expect(pacer.dropped == (frames.last ?? 0) + 1 - Int64(frames.count))
  }

  @Test func aLongStandstillIsABreakAtThePresent() {
    var pacer = FramePacer(start: 0, rate: rate)
    #expect(pacer.step(now: 0) == .frame(0))
    let now = MonotonicTime.at(3600 * Self.second)
    #expect(pacer.step(now: now) == .frameAfterBreak(107_892))
    #expect(pacer.dropped == 107_891)
    guard case .wait(let nanoseconds) = pacer.step(now: now) else {
      Issue.record("two frames at once after a break")
      return
    }
    #expect(nanoseconds < 34_000_000)
  }
}
