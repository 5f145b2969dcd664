import FMP4
@testable import Local
import NIOCore
import Support
import Testing
@testable import Transcode

/// Workers that keep to the protocol and say too much.
@Suite struct TranscodeConversationTests {
  private let plan: TranscodePlan
  private let record: ByteBuffer

  init() throws {
    let settings = TestSourceSettings(width: 320, height: 180, keyFrameInterval: 5, videoBitRate: 300_000)
    let media = try TestMedia(settings: settings, wallStart: PatternClock.wallStart)
    var track: TrackDescription?
    try media.advance(to: 0) { event in
      if case .tracks(let tracks) = event { track = tracks.first { $0.kind == .video } }
    }
    let source = try #require(track)
    plan = try #require(TranscodePlan(source: source, ladder: [RungSpecification(shortSide: 90, bitRate: 100_000)]))
    guard source.codec.id == .h264 else { throw TranscodeProtocolError(description: "no H.264") }
    record = ByteBuffer(bytes: source.codec.record())
  }

  private func begun() throws -> TranscodeConversation {
    var conversation = TranscodeConversation()
    var events: [TranscodeEvent] = []
    conversation.sent(plan)
    _ = try conversation.take(.track(rung: 0, record: record), &events)
    return conversation
  }

  /// Sends a frame and has it answered with so many bytes.
  private func answer(
    _ conversation: inout TranscodeConversation, _ number: Int64, bytes: Int
  ) throws(TranscodeProtocolError) {
    let time = number * Int64(plan.source.frameDuration ?? 1000)
    var events: [TranscodeEvent] = []
    conversation.sent(
      TranscodeRequest.SourceFrame(
        presentationTime: time, decodeTime: time, isSync: true, lateness: 0, payload: ByteBuffer()))
    _ = try conversation.take(
      .frame(
        TranscodeReply.RungFrame(
          rung: 0, presentationTime: time, isSync: true, payload: ByteBuffer(repeating: 0, count: bytes))), &events)
    _ = try conversation.take(.consumed(frames: 1, dropped: 0), &events)
  }

  @Test func aFrameBeyondTheRungsBudgetIsRefused() throws {
    let capacity = try #require(plan.budget(ofRung: 0)).capacity
    var conversation = try begun()
    try answer(&conversation, 0, bytes: capacity)
    conversation = try begun()
    #expect(throws: TranscodeProtocolError.self) { try self.answer(&conversation, 0, bytes: capacity + 1) }
    #expect(conversation.longestReply < capacity + 100, "nor is it kept until it is whole")
  }

  @Test func whatAWorkerSaysInTheLongRunIsBoundedByItsRungsBitRate() throws {
    var conversation = try begun()
    var given = 0
    #expect(throws: TranscodeProtocolError.self) {
      for number in 0..<1000 {
        try self.answer(&conversation, Int64(number), bytes: 4000)
        given += 4000
      }
    }
    #expect(given < 300_000)
  }

  @Test func anotherConfigurationGivesNoOtherBudget() throws {
    let capacity = try #require(plan.budget(ofRung: 0)).capacity
    var conversation = try begun()
    var events: [TranscodeEvent] = []
    try answer(&conversation, 0, bytes: capacity)
    conversation.sent(plan)
    _ = try conversation.take(.track(rung: 0, record: record), &events)
    #expect(throws: TranscodeProtocolError.self) { try self.answer(&conversation, 1, bytes: capacity) }
  }

  @Test func itIsAskedNoMoreThanItAnswers() throws {
    var conversation = try begun()
    var asked = 0
    while conversation.takesMore, asked < 1000 {
      conversation.sentDrain(nothingBefore: .zero)
      asked += 1
    }
    #expect(asked == TranscodeLimits.questions)
    var events: [TranscodeEvent] = []
    _ = try conversation.take(.drained, &events)
    #expect(conversation.takesMore)
  }
}
