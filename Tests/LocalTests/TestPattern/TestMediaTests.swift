import FMP4
@testable import Local
import NIOCore
import Support
import Testing

@Suite struct TestMediaTests {
  typealias Rate = TestSourceSettings.FrameRate

  private func small(rate: Rate = Rate(timescale: 30000, frameDuration: 1000), bFrames: Int = 0) -> TestSourceSettings {
    TestSourceSettings(
      width: 320, height: 180, frameRate: rate, keyFrameInterval: 30, bFrames: bFrames, videoBitRate: 300_000)
  }

  @Test(arguments: [0, 2])
  func everyFrameIsThereOnceInOrderAndOnTheGrid(bFrames: Int) throws {
    let media = try DecodedTestMedia(small(bFrames: bFrames), count: 95, wallStart: PatternClock.wallStart)
    #expect(media.frames.map(\.number) == Array(0..<95))
    let origin = try #require(media.anchor).mediaTime.ticks
    #expect(media.frames.map(\.time) == (0..<95).map { origin + $0 * 1000 })
    let video = media.samples(of: .video)
    #expect(video.map(\.decodeTime) == (0..<95).map { $0 * 1000 })
    #expect(video.allSatisfy { $0.duration == 1000 && $0.compositionOffset >= 0 })
    #expect(video.contains { $0.compositionOffset > origin } == (bFrames > 0), "frames are reordered")
    #expect(media.anchor?.wallTime == PatternClock.wallStart)
  }

  @Test(arguments: [0, 2])
  func keyFramesComeInTheirCadence(bFrames: Int) throws {
    let media = try DecodedTestMedia(small(bFrames: bFrames), count: 95, wallStart: PatternClock.wallStart)
    let origin = try #require(media.anchor).mediaTime.ticks
    let keys = media.samples(of: .video).filter(\.isSync).map { $0.decodeTime + Int64($0.compositionOffset) - origin }
    #expect(keys == [0, 30000, 60000, 90000])
  }

  @Test func afterABreakKeyFramesAreCountedFromItsFirstFrame() throws {
    let media = try TestMedia(settings: small(), wallStart: PatternClock.wallStart)
    var events: [MediaEvent] = []
    for frame in 0..<40 as Range<Int64> { try media.advance(to: frame) { events.append($0) } }
    media.breakTimeline(before: 313) { events.append($0) }
    for frame in 313..<380 as Range<Int64> { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    let samples = events.compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
    let keys = samples.filter { $0.track == .video && $0.isSync }.map { $0.decodeTime / 1000 }
    #expect(keys == [0, 30, 313, 343, 373])
  }

  @Test func equalInputsGiveEqualBytes() throws {
    func bytes(_ wallStart: WallTime) throws -> [UInt8] {
      let media = try DecodedTestMedia(small(bFrames: 2), count: 40, wallStart: wallStart)
      return media.samples.flatMap { Array($0.payload.readableBytesView) }
    }
    let first = try bytes(PatternClock.wallStart)
    #expect(try bytes(PatternClock.wallStart) == first)
    #expect(try bytes(PatternClock.wallStart + 1_000_000_000) != first)
  }

  @Test(arguments: [
    (Rate(timescale: 30000, frameDuration: 1000), 0), (Rate(timescale: 30000, frameDuration: 1001), 2),
    (Rate(timescale: 25000, frameDuration: 1000), 0), (Rate(timescale: 60000, frameDuration: 1000), 1),
  ])
  func flashAndBeepComeTogetherAtEachSecondOfUTC(rate: Rate, bFrames: Int) throws {
    let count = Int64(rate.timescale) / Int64(rate.frameDuration) * 4
    let media = try DecodedTestMedia(
      small(rate: rate, bFrames: bFrames), count: count, wallStart: PatternClock.wallStart)
    let flashes = media.flashes(timescale: rate.timescale)
    let beeps = media.beeps(sampleRate: 48000)
    let origin = try #require(media.anchor).mediaTime.seconds
    let period = Double(rate.frameDuration) / Double(rate.timescale)
    #expect(flashes.count == 4 && beeps.count == 4)
    for (index, (flash, beep)) in zip(flashes, beeps).enumerated() {
      #expect(abs(flash - beep) <= 0.002, "flash at \(flash) s, beep at \(beep) s")
      let second = origin + 0.6 + Double(index)
      #expect(flash >= second - 1e-6 && flash < second + period + 1e-6, "the first frame of UTC second \(second)")
    }
  }

  @Test func audioIsWithoutGapsFromTheVideosStart() throws {
    let media = try DecodedTestMedia(small(bFrames: 2), count: 60, wallStart: PatternClock.wallStart)
    let audio = media.samples(of: .audio)
    let origin = try #require(media.anchor).mediaTime.rescaled(to: 48000)
    #expect(audio.map(\.decodeTime) == audio.indices.map { origin + Int64($0) * 1024 })
    #expect(audio.allSatisfy { $0.duration == 1024 && $0.isSync })
    let end = try #require(audio.last).decodeTime + 1024
    #expect((origin + 96000..<origin + 96000 + 2048).contains(end), "the audio ends just after the frames")
    #expect(media.samples.map(\.decodeTime).min() == 0)
  }

  @Test func samplesComeInOrderOfTheirDecodeTimes() throws {
    let media = try DecodedTestMedia(small(bFrames: 2), count: 60, wallStart: PatternClock.wallStart)
    var latest = 0.0
    for sample in media.samples {
      let seconds = Double(sample.decodeTime) / (sample.track == .video ? 30000 : 48000)
      #expect(seconds > latest - 0.04, "no track is more than a frame behind the other")
      latest = max(latest, seconds)
    }
  }

  @Test func theDemoPutsAKeyFrameAtEachSegmentsStart() {
    #expect(TestSourceSettings.demo(segmentDuration: .seconds(2)) == TestSourceSettings(keyFrameInterval: 60))
    #expect(TestSourceSettings.demo(segmentDuration: .milliseconds(500)).keyFrameInterval == 15)
    #expect(TestSourceSettings.demo(segmentDuration: .milliseconds(1)).keyFrameInterval == 1)
  }

  @Test func theDemoKeepsItsBitRate() throws {
    let media = try DecodedTestMedia(TestSourceSettings(), count: 150, wallStart: PatternClock.wallStart)
    let bits = media.samples(of: .video).reduce(0) { $0 + $1.payload.readableBytes } * 8 / 5
    #expect((1_500_000...2_500_000).contains(bits), "\(bits) bits a second")
    #expect(media.frames.map(\.number) == Array(0..<150))
    guard let configuration = media.tracks.first?.codec.configuration as? H264.Configuration else {
      Issue.record("no H.264 track")
      return
    }
    #expect(configuration.format.width == 1280 && configuration.format.height == 720)
  }

  @Test func aDroppedFrameIsAGapAndABreakIsTold() throws {
    let settings = small()
    let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
    var events: [MediaEvent] = []
    for frame in [0, 1, 2, 4, 6] as [Int64] { try media.advance(to: frame) { events.append($0) } }
    media.breakTimeline(before: 300) { events.append($0) }
    for frame in 300..<310 as Range<Int64> { try media.advance(to: frame) { events.append($0) } }
    try media.finish { events.append($0) }
    let decoded = try DecodedTestMedia(events: events, width: settings.width)
    #expect(decoded.frames.map(\.number) == [0, 1, 2, 4, 6] + Array(300..<310))
    #expect(decoded.samples(of: .video).map(\.decodeTime) == ([0, 1, 2, 4, 6] + Array(300..<310)).map { $0 * 1000 })
    let breaks = events.indices.filter { if case .discontinuity = events[$0] { true } else { false } }
    let index = try #require(breaks.first)
    #expect(breaks.count == 1)
    let after = events[index...].compactMap { if case .sample(let sample) = $0 { sample } else { nil } }
    #expect(after.first { $0.track == .video }?.isSync == true)
    let firstAudio = try #require(after.first { $0.track == .audio }).decodeTime
    #expect((480_000..<480_000 + 1024).contains(firstAudio), "audio goes on with the frames")
  }
}
