import FMP4
@testable import Local
import NIOCore
import Support
import Testing
@testable import Transcode

/// What a publisher can make wait by changing its video's format.
@Suite struct TranscodeBacklogTests {
  private let plans: [TranscodePlan]

  init() throws {
    plans = try [(320, 180), (640, 360)].map { width, height in
      let settings = TestSourceSettings(width: width, height: height, keyFrameInterval: 5, videoBitRate: 300_000)
      let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
      var track: TrackDescription?
      try media.advance(to: 0) { event in
        if case .tracks(let tracks) = event { track = tracks.first { $0.kind == .video } }
      }
      let source = try #require(track)
      return try #require(
        TranscodePlan(source: source, ladder: [RungSpecification(shortSide: 90, bitRate: 100_000)]))
    }
  }

  private func frame(milliseconds: Int64, bytes: Int, isSync: Bool = true) -> TranscodeRequest.SourceFrame {
    let time = milliseconds * Int64(plans[0].timescale) / 1000
    return TranscodeRequest.SourceFrame(
      presentationTime: time, decodeTime: time, isSync: isSync, lateness: 0,
      payload: ByteBuffer(repeating: 1, count: bytes))
  }

  private func rest(_ backlog: inout TranscodeBacklog) -> [TranscodeBacklog.Entry] {
    var entries: [TranscodeBacklog.Entry] = []
    while let entry = backlog.next() { entries.append(entry) }
    return entries
  }

  private func bytes(_ entries: [TranscodeBacklog.Entry]) -> Int {
    entries.reduce(0) { sum, entry in
      if case .frame(let frame) = entry { return sum + frame.payload.readableBytes }
      return sum
    }
  }

  /// Two configurations in turn, one key frame of each: `step` milliseconds apart.
  private func alternating(count: Int, step: Int64, bytes: Int) -> TranscodeBacklog {
    var backlog = TranscodeBacklog()
    for index in 0..<count {
      backlog.drain()
      backlog.configure(plans[index % 2])
      backlog.append(frame(milliseconds: Int64(index) * step, bytes: bytes), now: 0)
    }
    return backlog
  }

  @Test func theFramesOfAllConfigurationsHaveThreeSecondsTogether() {
    var backlog = alternating(count: 1000, step: 100, bytes: 10)
    #expect(backlog.discarded > 900)
    let frames = rest(&backlog).filter { if case .frame = $0 { true } else { false } }
    #expect(frames.count <= 32)
  }

  @Test func theyHaveTheLimitOfBytesTogether() {
    var backlog = alternating(count: 100, step: 0, bytes: 1 << 20)
    #expect(backlog.discarded > 0)
    let waiting = bytes(rest(&backlog))
    #expect(waiting > 0 && waiting <= TranscodeLimits.backlogBytes)
  }

  @Test func theyHaveNoMoreBytesThanTheyMayHaveNow() {
    var backlog = TranscodeBacklog()
    backlog.configure(plans[0])
    for _ in 0..<10 { backlog.append(frame(milliseconds: 0, bytes: 10_000), now: 0, most: 50_000) }
    #expect(backlog.discarded > 0 && (10_000...50_000).contains(backlog.bytes))
  }

  @Test func theyAreNoMoreThanTheLimitWhateverTheirTimes() {
    let backlog = alternating(count: 3000, step: 0, bytes: 1)
    #expect(backlog.discarded > 0)
    // A break, a configuration and a frame are what one change adds.
    #expect(backlog.count <= TranscodeLimits.backlogEntries + 3)
  }

  @Test func aFrameMoreThanTheLimitLeavesTheNewestConfigurationAndABreak() throws {
    var backlog = TranscodeBacklog()
    backlog.configure(plans[0])
    for _ in 1..<TranscodeLimits.backlogEntries { backlog.append(frame(milliseconds: 0, bytes: 1), now: 0) }
    #expect(backlog.discarded == 0 && backlog.count == TranscodeLimits.backlogEntries)
    backlog.append(frame(milliseconds: 10, bytes: 1, isSync: false), now: 0)
    #expect(backlog.discarded == TranscodeLimits.backlogEntries)
    let entries = rest(&backlog)
    #expect(entries.count == 2)
    guard case .configure? = entries.first, case .drain(let time)? = entries.last else {
      Issue.record("\(entries)")
      return
    }
    #expect(time > MediaTime(milliseconds: 10) && time < MediaTime(milliseconds: 11))
  }

  @Test func configurationsWithoutFramesAreTheNewestOne() throws {
    var backlog = TranscodeBacklog()
    for index in 0..<1001 {
      backlog.drain()
      backlog.configure(plans[index % 2])
    }
    #expect(backlog.count == 1)
    backlog.append(frame(milliseconds: 0, bytes: 1), now: 0)
    for index in 0..<1001 {
      backlog.drain()
      backlog.configure(plans[index % 2])
    }
    #expect(backlog.count == 4, "the frame, its configuration, its break and the newest")
    #expect(backlog.discarded == 0)
  }

  @Test func aFrameThatNoMessageHoldsIsLeftOutWithWhatDependsOnIt() {
    var backlog = TranscodeBacklog()
    backlog.configure(plans[0])
    backlog.append(frame(milliseconds: 0, bytes: TranscodeLimits.sourceFrameBytes), now: 0)
    #expect(backlog.discarded == 0)
    backlog.append(frame(milliseconds: 40, bytes: TranscodeLimits.sourceFrameBytes + 1), now: 0)
    backlog.append(frame(milliseconds: 80, bytes: 10, isSync: false), now: 0)
    #expect(backlog.discarded == 2)
    backlog.append(frame(milliseconds: 120, bytes: 10), now: 0)
    #expect(backlog.discarded == 2)
    #expect(bytes(rest(&backlog)) == TranscodeLimits.sourceFrameBytes + 10)
  }

  @Test func aLostWorkersSuccessorIsGivenTheConfigurationOfTheNextKeyFrame() throws {
    var backlog = TranscodeBacklog()
    backlog.configure(plans[0])
    backlog.append(frame(milliseconds: 0, bytes: 1), now: 0)
    _ = backlog.next()
    _ = backlog.next()
    backlog.append(frame(milliseconds: 40, bytes: 1, isSync: false), now: 0)
    backlog.drain()
    backlog.configure(plans[1])
    backlog.append(frame(milliseconds: 80, bytes: 1), now: 0)
    backlog.restart()
    #expect(backlog.discarded == 1)
    let entries = rest(&backlog)
    guard entries.count == 3, case .configure(let plan) = entries[0], case .drain(let time) = entries[1] else {
      Issue.record("\(entries)")
      return
    }
    #expect(plan.source == plans[1].source)
    #expect(time == MediaTime(milliseconds: 80))
  }

  /// Packets of 20 ms of A-law.
  private func telephone(_ index: Int) -> TranscodeRequest.SourceFrame {
    TranscodeRequest.SourceFrame(
      presentationTime: Int64(index) * 160, decodeTime: Int64(index) * 160, isSync: true, lateness: 0,
      payload: ByteBuffer(repeating: 0xD5, count: 160))
  }

  private func telephonePlan() throws -> TranscodePlan {
    let codec = try Codec(.alaw, record: ByteBuffer(bytes: G711.record(sampleRate: 8000, channels: 1)))
    let track = TrackDescription(id: .audio, codec: codec, timescale: 8000)
    return try #require(TranscodePlan(source: track, aim: .audio(AudioSpecification(.aac))))
  }

  /// A minute in six seconds, while the worker takes nothing.
  @Test func audioThatComesFasterThanItPlaysWaitsByTheTimeOfItsArrival() throws {
    var backlog = TranscodeBacklog()
    backlog.configure(try telephonePlan())
    for index in 0..<3000 { backlog.append(telephone(index), now: .at(Int64(index) * 2_000_000)) }
    #expect(backlog.discarded == 0)
    let times = rest(&backlog).compactMap { if case .frame(let frame) = $0 { frame.presentationTime } else { nil } }
    #expect(times == (0..<3000).map { Int64($0) * 160 })
  }

  /// Four minutes in half a minute: ten seconds are over, and nobody waits for the newest.
  @Test func audioOfAFileThatIsSentWaitsLonger() throws {
    var backlog = TranscodeBacklog()
    backlog.configure(try telephonePlan())
    for index in 0..<8000 { backlog.append(telephone(index * 3 / 2), now: .at(Int64(index) * 4_000_000)) }
    #expect(backlog.discarded == 0)
  }

  @Test(arguments: [(10_000_000_000, 0), (10_000_000_001, 1)] as [(Int64, Int)])
  func audioWaitsTenSecondsAndThenTheNewestIsLeft(_ now: Int64, _ discarded: Int) throws {
    var backlog = TranscodeBacklog()
    backlog.configure(try telephonePlan())
    backlog.append(telephone(0), now: 0)
    backlog.append(telephone(1), now: .at(now))
    #expect(backlog.discarded == discarded)
  }

  @Test func audioThatWaitsIsBoundedByItsNumberWhateverItsTimes() throws {
    var backlog = TranscodeBacklog()
    backlog.configure(try telephonePlan())
    for index in 1..<TranscodeLimits.audioBacklogEntries { backlog.append(telephone(index), now: 0) }
    #expect(backlog.discarded == 0 && backlog.count == TranscodeLimits.audioBacklogEntries)
    backlog.append(telephone(TranscodeLimits.audioBacklogEntries), now: 0)
    #expect(backlog.discarded == TranscodeLimits.audioBacklogEntries - 1 && backlog.count == 3)
  }
}
