/// Follows how far a microphone's audio has run away from the monotonic clock, and says by how much it has to be
/// stretched so that it comes back: slowly, so that nobody hears it.
///
/// A second-order loop: the error is smoothed over a second (buffers arrive with a jitter of milliseconds), and the
/// rate's own deviation is learned, so that a constant one leaves no error behind.
struct DriftEstimator: Sendable {
  /// The fraction of the error that is taken back each second, and of what is left, learned as the rate's deviation.
  private static let gain = 0.04
  private static let learning = gain * gain / 4
  /// Seconds that the error is smoothed over.
  private static let smoothing = 1.0
  /// The most that audio is stretched: 0.1 %, which is a sixtieth of a semitone.
  static let largestCorrection = 1e-3

  /// Seconds by which the audio is behind the clock (positive: too few samples so far), smoothed.
  private(set) var error = 0.0
  private var deviation = 0.0
  private var isSettled = false

  init() {}

  /// - Parameters:
  ///   - error: seconds by which the audio is behind the clock.
  ///   - elapsed: seconds since the last call.
  /// - Returns: how much longer than itself the audio is to become, as a fraction: 0.0001 is 100 ppm.
  mutating func correction(error measured: Double, elapsed: Double) -> Double {
    let elapsed = min(max(elapsed, 0), 1)
    if isSettled {
      error += (measured - error) * min(1, elapsed / Self.smoothing)
    } else {
      (error, isSettled) = (measured, true)
    }
    deviation += error * Self.learning * elapsed
    deviation = min(max(deviation, -Self.largestCorrection), Self.largestCorrection)
    let correction = deviation + error * Self.gain
    return min(max(correction, -Self.largestCorrection), Self.largestCorrection)
  }

  /// The audio was bridged with silence, or begins anew: the error is gone, what was learned of the rate stays.
  mutating func restart() { isSettled = false }
}
