/// Tracks the deviation of a microphone's audio from the monotonic clock. Returns the stretching that removes it, slow
/// enough to be inaudible.
///
/// A second-order loop: the error is smoothed over a second, because buffers arrive with a jitter of milliseconds. The
/// deviation of the rate is learned, so that a constant one leaves no error.
struct DriftEstimator: Sendable {
  /// Fraction of the error that is corrected per second, and fraction that is learned as the deviation of the rate.
  private static let gain = 0.04
  private static let learning = gain * gain / 4
  /// Smoothing time of the error in seconds.
  private static let smoothing = 1.0
  /// Most stretching: 0.1 %, a sixtieth of a semitone.
  static let largestCorrection = 1e-3

  /// Delay of the audio against the clock in seconds, smoothed. Positive: too few samples so far.
  private(set) var error = 0.0
  private var deviation = 0.0
  private var isSettled = false

  init() {}

  /// - Parameters:
  ///   - error: delay of the audio against the clock in seconds.
  ///   - elapsed: seconds since the last call.
  /// - Returns: the stretching as a fraction: 0.0001 is 100 ppm.
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

  /// Clears the error after a bridged gap or a new start. The learned rate stays.
  mutating func restart() { isSettled = false }
}
