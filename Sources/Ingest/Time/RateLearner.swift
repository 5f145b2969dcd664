internal import FMP4

/// Finds the constant rate behind decode times, rounded to milliseconds, that nobody named: the slowest common rate on whose
/// grid every frame has lain, within the wire's rounding, for long enough to tell it from its neighbours.
struct RateLearner: Sendable {
  /// Long enough that 24 and 24000/1001 frames a second are two milliseconds apart, twice what rounding hides.
  private static let proof: Int64 = 4000
  private static let proofFrames = 16

  private struct Candidate: Sendable {
    let clock: FrameClock
    var anchor: Int64 = 0
    var lastFrame: Int64 = 0
    var frames = 0
  }

  private var candidates: [Candidate]

  init() {
    // A timescale on which 1 ms is a whole number of ticks, so that the comparison is exact.
    candidates = FrameClock.commonRates.map {
      Candidate(clock: FrameClock(rate: $0, timescale: FrameClock.timescale(for: $0)))
    }
  }

  /// Takes the next decode time, in nanoseconds; the rate, once it is certain.
  mutating func learn(_ decode: Int64) -> FrameRate? {
    for index in candidates.indices {
      let perMillisecond = Int64(candidates[index].clock.timescale / 1000)
      let time = MediaTime(nanoseconds: decode).rescaled(to: candidates[index].clock.timescale)
      let ticks = time &- candidates[index].anchor
      let frame = candidates[index].clock.frame(nearest: ticks)
      let error = (ticks &- candidates[index].clock.ticks(ofFrame: frame)).magnitude
      if candidates[index].frames > 0, error <= UInt64(perMillisecond), frame > candidates[index].lastFrame {
        candidates[index].lastFrame = frame
        candidates[index].frames += 1
        if ticks >= Self.proof &* perMillisecond, candidates[index].frames >= Self.proofFrames {
          return candidates[index].clock.rate
        }
      } else {
        candidates[index].anchor = time
        candidates[index].lastFrame = 0
        candidates[index].frames = 1
      }
    }
    return nil
  }
}
