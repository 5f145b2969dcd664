internal import FMP4

/// Times of the test source's flashes and beeps: the first frame of each UTC second. Pure arithmetic on the wall clock
/// time of frame 0. Video and audio use the same function, so both hit exactly the same instant.
struct TestSchedule: Sendable {
  /// Time of frame 0.
  let wallStart: WallTime
  let rate: TestSourceSettings.FrameRate

  private static let nanosecondsPerSecond: Int128 = 1_000_000_000

  /// The first frame of the UTC second that a frame is in. It may be before frame 0.
  func firstFrameOfSecond(around frame: Int64) -> Int64 {
    let scale = Int128(rate.timescale)
    let start = Int128(wallStart.nanoseconds) * scale
    let step = Int128(rate.frameDuration) * Self.nanosecondsPerSecond
    let second = Self.floor(start + Int128(frame) * step, Self.nanosecondsPerSecond * scale)
    let distance = second * Self.nanosecondsPerSecond * scale - start
    return Int64(truncatingIfNeeded: -Self.floor(-distance, step))
  }

  /// Wall clock time of a frame, truncated.
  func wallTime(of frame: Int64) -> WallTime {
    let offset = Int128(frame) * Int128(rate.frameDuration) * Self.nanosecondsPerSecond / Int128(rate.timescale)
    return wallStart &+ Int64(truncatingIfNeeded: offset)
  }

  /// The first audio sample at or after a frame's time.
  func firstSample(of frame: Int64, sampleRate: Int) -> Int64 {
    let exact = Int128(frame) * Int128(rate.frameDuration) * Int128(sampleRate)
    return Int64(truncatingIfNeeded: -Self.floor(-exact, Int128(rate.timescale)))
  }

  /// The frame that is shown while an audio sample plays.
  func frame(ofSample sample: Int64, sampleRate: Int) -> Int64 {
    let exact = Int128(sample) * Int128(rate.timescale)
    return Int64(truncatingIfNeeded: Self.floor(exact, Int128(rate.frameDuration) * Int128(sampleRate)))
  }

  private static func floor(_ numerator: Int128, _ denominator: Int128) -> Int128 {
    let (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
