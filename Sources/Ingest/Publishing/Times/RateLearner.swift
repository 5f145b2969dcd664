internal import FMP4

/// Finds an unstated constant frame rate from decode times that are rounded, to milliseconds at worst. It is the slowest common
/// rate whose grid every frame has fitted, within the rounding. That must hold long enough to rule out its neighbours.
struct RateLearner: Sendable {
  /// Milliseconds. Long enough that 24 and 24000/1001 frames per second are two milliseconds apart, twice the rounding.
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
    // On these timescales 1 ms is a whole number of ticks, so the comparison is exact.
    candidates = FrameClock.commonRates.map {
      Candidate(clock: FrameClock(rate: $0, timescale: FrameClock.timescale(for: $0)))
    }
  }

  /// Takes the next decode time, and how far rounding may have moved it, in nanoseconds. Returns the rate once it is certain.
  mutating func learn(_ decode: Int64, rounding: Int64 = 1_000_000) -> FrameRate? {
    for index in candidates.indices {
      let timescale = candidates[index].clock.timescale
      let tolerance = FrameClock.ticks(rounding, timescale)
      let time = MediaTime(nanoseconds: decode).rescaled(to: timescale)
      let ticks = time &- candidates[index].anchor
      let frame = candidates[index].clock.frame(nearest: ticks)
      let error = (ticks &- candidates[index].clock.ticks(ofFrame: frame)).magnitude
      if candidates[index].frames > 0, error <= UInt64(tolerance), frame > candidates[index].lastFrame {
        candidates[index].lastFrame = frame
        candidates[index].frames += 1
        if ticks >= Self.proof &* Int64(timescale / 1000), candidates[index].frames >= Self.proofFrames {
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
