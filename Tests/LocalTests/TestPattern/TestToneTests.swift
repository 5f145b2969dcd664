import FMP4
import Glibc
@testable import Local
import Support
import Testing

@Suite("The beep of the test source")
struct TestToneTests {
  /// 30 frames a second.
  private func tone(_ wallStart: WallTime = 0, rate: Int = 48_000) -> TestTone {
    TestTone(
      schedule: TestSchedule(
        wallStart: wallStart, rate: TestSourceSettings.FrameRate(timescale: 30_000, frameDuration: 1000)),
      sampleRate: rate)
  }

  private func samples(_ tone: TestTone, _ count: Int, from first: Int64) -> [Float] {
    [Float](unsafeUninitializedCapacity: count) { buffer, written in
      buffer.initialize(repeating: 9)
      tone.fill(UnsafeMutableBufferPointer(rebasing: buffer[..<count]), from: first)
      written = count
    }
  }

  @Test func `It is 80 ms of 1 kHz that begins with each second, and silence else`() {
    let second = samples(tone(), 24_000, from: 48_000)
    #expect(abs((second.first ?? 0) - 0.4) < 0.0001, "it begins sharply")
    // A period of 1 kHz has 48 samples.
    for index in stride(from: 0, to: 3360, by: 48) {
      #expect(abs(second[index] - 0.4) < 0.0001 && abs(second[index + 24] + 0.4) < 0.0001)
      #expect(abs(second[index + 12]) < 0.0001)
    }
    #expect(abs(second[3839]) < 0.01, "it ends softly")
    #expect(second[3840...].allSatisfy { $0 == 0 })
    #expect(second.allSatisfy { abs($0) <= 0.4001 })
  }

  @Test func `It begins with the first frame of a second of the clock`() {
    // Half a second before: that is frame 15.
    let late = samples(tone(500_000_000), 1024, from: 23_500)
    #expect(late[..<500].allSatisfy { $0 == 0 } && late[500] > 0.39)
    // 10 ms before: the next frame comes 33 ms later, at sample 1600.
    let next = samples(tone(990_000_000), 1700, from: 0)
    #expect(next[..<1600].allSatisfy { $0 == 0 } && next[1600] > 0.39)
  }

  @Test(arguments: [1, 7, 960, 1024, 4801]) func `Blocks of any length make the same audio`(_ length: Int) {
    let tone = tone(123_456_789)
    var joined: [Float] = []
    while joined.count < 110_000 { joined += samples(tone, length, from: Int64(joined.count)) }
    let single = (0..<11).flatMap { samples(tone, 10_000, from: Int64($0) * 10_000) }
    #expect(joined[..<110_000] == single[...])
  }

  @Test func `A beep that began before the stream is heard to its end`() {
    let begun = samples(tone(40_000_000), 4800, from: 0)
    // The first frame of the second lies before frame 0; of 80 ms some 40 are left.
    #expect(begun.first != 0)
    let end = begun.lastIndex { $0 != 0 } ?? 0
    #expect((1500...2400).contains(end), "\(end)")
  }

  @Test func `Another rate has as much of it`() {
    let second = samples(tone(rate: 44_100), 22_050, from: 0)
    #expect(second[3527] != 0 && second[3528...].allSatisfy { $0 == 0 })
  }
}
