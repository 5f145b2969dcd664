import Base
import FMP4
@testable import Local
import Support
import Testing

@Suite("A still picture that is repeated")
struct StillLoopTests {
  private static let start: MonotonicTime = 7_000_000_000

  /// Nanoseconds after the start.
  private func at(_ nanoseconds: Int64) -> MonotonicTime { Self.start &+ nanoseconds }

  private func loop() throws -> (StillLoop, StillPicture) {
    let picture = try StillPicture(testCard: TestSourceSettings(width: 160, height: 90))
    return (StillLoop(picture, start: Self.start), picture)
  }

  private func samples(_ step: StillLoop.Step) -> [Sample]? {
    if case .samples(let samples) = step { samples } else { nil }
  }

  @Test func `It waits for each frame, and not beyond it`() throws {
    var (loop, _) = try loop()
    guard case .wait(nanoseconds: 1) = loop.step(now: at(-1)) else {
      Issue.record("nothing comes before the start")
      return
    }
    #expect(samples(loop.step(now: at(0)))?.count == 6, "a frame of video, and the audio that begins in it")
    guard case .wait(nanoseconds: 100_000_000) = loop.step(now: at(0)) else {
      Issue.record("the second frame comes after a tenth of a second")
      return
    }
    #expect(samples(loop.step(now: at(100_000_000))) != nil)
  }

  @Test func `Times grow exactly, and samples are in the order of their times`() throws {
    var (loop, picture) = try loop()
    var all: [Sample] = []
    for number in 0..<600 { all += try #require(samples(loop.step(now: at(Int64(number) * 100_000_000)))) }
    let video = all.filter { $0.track == .video }
    #expect(video.map(\.decodeTime) == (0..<600).map { $0 * 3_000 })
    #expect(video.enumerated().allSatisfy { $1.payload == picture.video[$0 % 20].payload })
    #expect(video.enumerated().allSatisfy { $1.isSync == ($0 % 10 == 0) })
    let audio = all.filter { $0.track == .audio }
    #expect(audio.map(\.decodeTime) == audio.indices.map { Int64($0) * 1024 })
    #expect(audio.count == (60 * 48_000 + 1023) / 1024)
    let times = all.map { MediaTime(ticks: $0.decodeTime, timescale: $0.track == .video ? 30_000 : 48_000) }
    #expect(zip(times, times.dropFirst()).allSatisfy { $0 <= $1 })
  }

  @Test func `After five seconds all follows, and after more it breaks and goes on from now`() throws {
    var (loop, _) = try loop()
    _ = loop.step(now: at(0))
    // The second frame is 5 s late, then the third one 5 s and a nanosecond.
    #expect(samples(loop.step(now: at(5_100_000_000))) != nil)
    guard case .samplesAfterBreak(let samples) = loop.step(now: at(5_200_000_001)) else {
      Issue.record("the timeline breaks")
      return
    }
    #expect(samples.first?.decodeTime == 52 * 3_000 && samples.first?.isSync == true)
    let audio = samples.dropFirst().map(\.decodeTime)
    let beginning = try #require(audio.first)
    #expect(beginning == 249_856, "the first frame of audio after 5.2 s: number 244")
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $1 - $0 == 1024 })
    var syncs: [Int64] = []
    for number in 53..<80 {
      let samples = try #require(self.samples(loop.step(now: at(Int64(number) * 100_000_000))))
      syncs += samples.filter { $0.track == .video && $0.isSync }.map(\.decodeTime)
    }
    #expect(syncs == [62 * 3_000, 72 * 3_000], "key frames come each second from the first one on")
  }
}
