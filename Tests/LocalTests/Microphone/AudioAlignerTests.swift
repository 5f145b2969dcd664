import Base
import CLibAV
@testable import Local
import Support
import Testing

@Suite struct AudioAlignerTests {
  /// Feeds seconds of a ramp in blocks of 10 ms from a microphone whose clock is off, and counts what comes out.
  private func feed(
    _ aligner: AudioAligner, seconds: Double, from start: MonotonicTime = 1_000_000_000, rate: Int = 48000,
    partsPerMillion: Double = 0
  ) throws -> Int {
    let count = rate / 100
    var samples = [Float](repeating: 0.25, count: count * 2)
    var received = 0
    let blocks = Int(seconds * 100 * (1 + partsPerMillion * 1e-6))
    for block in 0..<blocks {
      let heard = Double(block) * 0.01 / (1 + partsPerMillion * 1e-6)
      try samples.withUnsafeMutableBytes { bytes in
        try aligner.add(UnsafeRawBufferPointer(bytes), count: count, time: start + Int64(heard * 1e9)) { left, right in
          #expect(left.count == right.count)
          received += left.count
        }
      }
    }
    return received
  }

  @Test(arguments: [48000, 44100, 16000])
  func whatComesOutLastsAsLongAsWhatWentIn(rate: Int) throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: rate, channels: 2, format: AV_SAMPLE_FMT_FLT)
    let received = try feed(aligner, seconds: 10, rate: rate)
    #expect(abs(received - 480_000) < 100 && aligner.bridged == 0)
    #expect(aligner.start == 1_000_000_000 && Int(aligner.produced) == received)
  }

  @Test(arguments: [100.0, -100])
  func aMicrophoneThatIsOffIsStretchedBackOntoTheClock(partsPerMillion: Double) throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_FLT)
    let received = try feed(aligner, seconds: 600, partsPerMillion: partsPerMillion)
    // Without stretching it would be 60 ms, 2880 samples, off.
    #expect(abs(received - 600 * 48000) < 240, "\(received - 600 * 48000) samples off")
    #expect(aligner.bridged == 0)
  }

  @Test func aGapIsBridgedWithSilenceOfItsLength() throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_FLT)
    let first = try feed(aligner, seconds: 1)
    let second = try feed(aligner, seconds: 1, from: 2_500_000_000)
    #expect(abs(Int(aligner.bridged) - 24_000) < 100)
    #expect(abs(first + second - 120_000) < 100)
  }

  /// A driver's time that is 100 ms ahead for one block: nothing is missing, so the silence has to go again.
  @Test func `Silence for samples that were only late is cut out again`() throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_FLT)
    var received = try feed(aligner, seconds: 1)
    received += try feed(aligner, seconds: 0.01, from: 2_100_000_000)
    #expect(abs(Int(aligner.bridged) - 4_800) < 100)
    received += try feed(aligner, seconds: 3, from: 2_010_000_000)
    #expect(abs(received - 48 * 4_010) < 100, "\(received - 48 * 4_010) samples off")
  }

  @Test func whileNothingIsHeardTimeGoesOnInSilence() throws {
    let aligner = AudioAligner()
    var zeros = 0
    aligner.silence(until: 1_000_000_000) { _, _ in }
    aligner.silence(until: 3_000_000_000) { left, _ in
      zeros += left.count { $0 == 0 }
    }
    #expect(zeros == 96_000 && aligner.end == 3_000_000_000)
    try aligner.connect(rate: 48000, channels: 1, format: AV_SAMPLE_FMT_S16)
    let sample = [Int16](repeating: 1000, count: 480)
    var received: [Float] = []
    try sample.withUnsafeBytes { bytes in
      for block in 0..<10 {
        try aligner.add(bytes, count: 480, time: 3_000_000_000 + Int64(block) * 10_000_000) { left, _ in
          received += left
        }
      }
    }
    #expect(abs(received.count - 4800) < 100 && received.contains { abs($0 - 0.0305) < 0.005 })
  }

  /// A block of 10 ms with a value for each channel; what comes out of the left and right.
  private func add(
    _ aligner: AudioAligner, at time: MonotonicTime, channels: [Int16] = [1000, 1000]
  ) throws -> (left: [Float], right: [Float]) {
    let samples = (0..<480).flatMap { _ in channels }
    var out: (left: [Float], right: [Float]) = ([], [])
    try samples.withUnsafeBytes { bytes in
      try aligner.add(bytes, count: 480, time: time) { left, right in
        out.left += left
        out.right += right
      }
    }
    return out
  }

  @Test(arguments: [3, 8, 12, 18, 128])
  func ofManyChannelsTheFirstTwoAreHeard(count: Int) throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: 48000, channels: count, format: AV_SAMPLE_FMT_S16)
    let channels: [Int16] = [8192, -16384] + [Int16](repeating: .max, count: count - 2)
    var heard: (left: [Float], right: [Float]) = ([], [])
    for block in 0..<10 as Range<Int64> {
      let out = try add(aligner, at: 1_000_000_000 + block * 10_000_000, channels: channels)
      heard.left += out.left
      heard.right += out.right
    }
    #expect(heard.left.count > 4700 && heard.left.count == heard.right.count)
    #expect(heard.left[100..<4600].allSatisfy { abs($0 - 0.25) < 0.001 })
    #expect(heard.right[100..<4600].allSatisfy { abs($0 + 0.5) < 0.001 })
  }

  @Test(arguments: [2, 12, 30, 59] as [Int64])
  func aHoleBeforeAMicrophonesFirstAudioIsBridgedExactly(milliseconds: Int64) throws {
    let aligner = AudioAligner()
    aligner.silence(until: 1_000_000_000) { _, _ in }
    aligner.silence(until: 2_000_000_000) { _, _ in }
    let before = aligner.bridged
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_S16)
    let out = try add(aligner, at: 2_000_000_000 + milliseconds * 1_000_000)
    #expect(aligner.bridged - before == 48 * milliseconds)
    // The audio itself begins with its first sample, at its time.
    let hole = Int(48 * milliseconds)
    #expect(out.left.count { $0 == 0 } == hole && out.left[hole + 20] > 0.02)
  }

  @Test func audioThatSilenceWasGivenOutForIsLeftOutExactly() throws {
    let aligner = AudioAligner()
    aligner.silence(until: 1_000_000_000) { _, _ in }
    aligner.silence(until: 2_000_000_000) { _, _ in }
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_S16)
    var received = 0
    for block in 0..<10 as Range<Int64> {
      received += try add(aligner, at: 1_985_000_000 + block * 10_000_000).left.count
    }
    // 85 ms are after what has been given out; a fraction of a millisecond is inside still.
    #expect((4080 - 48...4080).contains(received), "\(received) samples")
  }

  @Test func whatAnOverrunLostIsBridgedExactlyHoweverShort() throws {
    let aligner = AudioAligner()
    try aligner.connect(rate: 48000, channels: 2, format: AV_SAMPLE_FMT_S16)
    for block in 0..<50 as Range<Int64> { _ = try add(aligner, at: 1_000_000_000 + block * 10_000_000) }
    // 20 ms that came late are stretched away, those that were lost are not.
    _ = try add(aligner, at: 1_520_000_000)
    #expect(aligner.bridged == 0)
    aligner.interrupt()
    _ = try add(aligner, at: 1_550_000_000)
    #expect((1920 - 20...1920 + 20).contains(aligner.bridged), "\(aligner.bridged) samples of silence")
  }
}
