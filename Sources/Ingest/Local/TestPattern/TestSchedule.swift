/// When the test source flashes and beeps: at the first picture of each second of UTC. Pure arithmetic on the wall
/// time of picture 0; pictures and audio ask the same function, so that both hit the same instant exactly.
struct TestSchedule: Sendable {
  /// Nanoseconds since 1970 of picture 0.
  let wallStart: Int64
  let rate: TestSourceSettings.FrameRate

  private static let nanosecondsPerSecond: Int128 = 1_000_000_000

  /// The first picture of the UTC second that a picture lies in; may be before picture 0.
  func firstPictureOfSecond(around picture: Int64) -> Int64 {
    let scale = Int128(rate.timescale)
    let start = Int128(wallStart) * scale
    let step = Int128(rate.frameDuration) * Self.nanosecondsPerSecond
    let second = Self.floor(start + Int128(picture) * step, Self.nanosecondsPerSecond * scale)
    let distance = second * Self.nanosecondsPerSecond * scale - start
    return Int64(truncatingIfNeeded: -Self.floor(-distance, step))
  }

  /// Nanoseconds since 1970 of a picture, cut to the nanosecond.
  func wallNanoseconds(of picture: Int64) -> Int64 {
    let offset = Int128(picture) * Int128(rate.frameDuration) * Self.nanosecondsPerSecond / Int128(rate.timescale)
    return wallStart &+ Int64(truncatingIfNeeded: offset)
  }

  /// The first sample of audio at or after a picture's time.
  func firstSample(of picture: Int64, sampleRate: Int) -> Int64 {
    let exact = Int128(picture) * Int128(rate.frameDuration) * Int128(sampleRate)
    return Int64(truncatingIfNeeded: -Self.floor(-exact, Int128(rate.timescale)))
  }

  /// The picture that is shown while a sample of audio is heard.
  func picture(ofSample sample: Int64, sampleRate: Int) -> Int64 {
    let exact = Int128(sample) * Int128(rate.timescale)
    return Int64(truncatingIfNeeded: Self.floor(exact, Int128(rate.frameDuration) * Int128(sampleRate)))
  }

  private static func floor(_ numerator: Int128, _ denominator: Int128) -> Int128 {
    let (quotient, remainder) = numerator.quotientAndRemainder(dividingBy: denominator)
    return remainder < 0 ? quotient - 1 : quotient
  }
}
