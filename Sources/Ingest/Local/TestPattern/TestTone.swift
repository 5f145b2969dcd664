internal import Glibc

/// The audio of the test source: a short 1 kHz beep that begins exactly with each flash, and silence between.
struct TestTone {
  private let schedule: TestSchedule
  private let sampleRate: Int
  /// One beep, from −1 to 1.
  private let beep: [Float]

  private static let frequency = 1000.0
  private static let beepSeconds = 0.08
  /// Level of the beep, as a fraction of full scale.
  private static let level = 0.4
  /// Duration of the soft end in seconds. The beginning is sharp, so that its time can be measured.
  private static let releaseSeconds = 0.01

  init(schedule: TestSchedule, sampleRate: Int) {
    self.schedule = schedule
    self.sampleRate = sampleRate
    let rate = Double(sampleRate)
    let count = Int(rate * Self.beepSeconds)
    beep = (0..<count).map { index in
      let remaining = Double(count - index) / (rate * Self.releaseSeconds)
      return Float(Self.level * min(1, remaining) * cos(2 * .pi * Self.frequency * Double(index) / rate))
    }
  }

  /// Writes the samples from `first` on.
  func fill(_ samples: UnsafeMutableBufferPointer<Float>, from first: Int64) {
    samples.update(repeating: 0)
    // A block is far shorter than a second, so at most two beeps overlap it.
    for edge in Set([first, first + Int64(samples.count) - 1]) {
      let frame = schedule.frame(ofSample: edge, sampleRate: sampleRate)
      let flash = schedule.firstFrameOfSecond(around: frame)
      let start = schedule.firstSample(of: flash, sampleRate: sampleRate) - first
      for index in max(0, start)..<max(0, start, min(Int64(samples.count), start + Int64(beep.count))) {
        samples[Int(index)] = beep[Int(index - start)]
      }
    }
  }
}
