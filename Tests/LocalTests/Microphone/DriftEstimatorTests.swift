@testable import Local
import Support
import Testing

@Suite struct DriftEstimatorTests {
  /// A microphone whose clock is off by so much, heard in blocks of 10 ms whose times jitter, for hours. Returns the
  /// largest real skew after the first minute and over all, in milliseconds.
  private func run(partsPerMillion: Double, hours: Double, jitter: Double) -> (settled: Double, largest: Double) {
    var estimator = DriftEstimator()
    var random = SystemRandomNumberGeneratorWithSeed(seed: 7)
    let block = 0.01
    // Seconds by which the audio that came out is behind the clock.
    var behind = 0.0
    var largest = 0.0
    var settled = 0.0
    let count = Int(hours * 3600 / block)
    for index in 0..<count {
      let measured = behind + Double.random(in: -jitter...jitter, using: &random)
      let correction = estimator.correction(error: measured, elapsed: block)
      // A quick microphone gives more samples than seconds; the correction makes audio longer by its fraction.
      behind -= block * (partsPerMillion * 1e-6 + correction)
      largest = max(largest, abs(behind))
      if Double(index) * block > 60 { settled = max(settled, abs(behind)) }
    }
    return (settled * 1000, largest * 1000)
  }

  private struct SystemRandomNumberGeneratorWithSeed: RandomNumberGenerator {
    var state: UInt64
    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 }
    mutating func next() -> UInt64 {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      return state
    }
  }

  @Test(arguments: [-100.0, -20, 0, 35, 100])
  func skewStaysSmallOverHours(partsPerMillion: Double) {
    let (_, largest) = run(partsPerMillion: partsPerMillion, hours: isLong ? 4 : 1.5, jitter: 0.003)
    #expect(largest < 5, "\(largest) ms at \(partsPerMillion) ppm")
  }

  @Test func aConstantDeviationLeavesNoErrorBehind() {
    var estimator = DriftEstimator()
    var behind = 0.0
    var correction = 0.0
    for _ in 0..<60_000 {
      correction = estimator.correction(error: behind, elapsed: 0.01)
      behind -= 0.01 * (100e-6 + correction)
    }
    #expect(abs(behind) < 1e-5)
    #expect(abs(correction + 100e-6) < 1e-6)
  }

  @Test func theCorrectionIsNeverHeard() {
    var estimator = DriftEstimator()
    for _ in 0..<1000 {
      #expect(abs(estimator.correction(error: 1, elapsed: 0.1)) <= DriftEstimator.largestCorrection)
    }
  }

  @Test func aRestartForgetsTheErrorAndKeepsTheRate() {
    var estimator = DriftEstimator()
    for _ in 0..<10_000 { _ = estimator.correction(error: 0.02, elapsed: 0.01) }
    let learned = estimator.correction(error: 0.02, elapsed: 0.01)
    estimator.restart()
    let after = estimator.correction(error: 0, elapsed: 0.01)
    #expect(after > 0 && after < learned)
    #expect(estimator.error == 0)
  }
}
