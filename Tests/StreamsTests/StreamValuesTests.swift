import Base
import Control
import FMP4
import NIOEmbedded
import Publishing
@testable import Streams
import StreamSupport
import Support
import Testing

/// The four values of a stream, each by itself.
@Suite struct StreamValuesTests {
  private func request(_ host: String, requested: PublishRequest.RecordingMode = .asConfigured) throws -> PublishRequest
  {
    PublishRequest(
      stream: try #require(StreamName("cam")), key: nil, protocolName: "RTMP", remoteAddress: "\(host):5", host: host,
      recording: requested, origin: .peer
    ) { _ in }
  }

  // MARK: Who publishes

  @Test func theNewestWinsAndTheFormerHolderIsTold() throws {
    var slot = PublisherSlot(PublicationBounds.Limits())
    let first = try slot.admit(try request("a"), Authorizer.Proof(right: .keyOfName), now: 0)
    #expect(first.former == nil)
    let second = try slot.admit(try request("b"), Authorizer.Proof(right: .keyOfName), now: 1)
    #expect(second.former?.token == first.token && slot.holder?.token == second.token)
    #expect(throws: PublishRefusal.self) {
      try slot.admit(try request("c"), Authorizer.Proof(right: .keyOfName), now: 2)
    }
    #expect(slot.holder?.token == second.token && slot.lastHost == "b", "who is refused changes nothing")
    #expect(slot.release()?.token == second.token && slot.holder == nil)
  }

  @Test func theClockAloneKeepsNoName() throws {
    var slot = PublisherSlot(PublicationBounds.Limits())
    _ = try slot.admit(try request("a"), Authorizer.Proof(right: .anonymous), now: 0)
    let grace = StreamSettings.holderGrace.nanoseconds
    slot.count(.progress(.zero), now: .at(grace))
    #expect(try slot.admit(try request("b"), Authorizer.Proof(right: .anonymous), now: .at(grace)).former != nil)
    slot.count(.discontinuity, now: .at(2 * grace))
    #expect(throws: PublishRefusal.self) {
      try slot.admit(try request("c"), Authorizer.Proof(right: .anonymous), now: .at(2 * grace + 1))
    }
    #expect(slot.counters.intake.jumps == 1 && slot.anonymousHost == "b")
  }

  /// Fragments begin with a key frame there, and so does what counts as received.
  @Test func framesBetweenABreakAndTheNextKeyFrameAreLost() throws {
    var slot = PublisherSlot(PublicationBounds.Limits())
    _ = try slot.admit(try request("a"), Authorizer.Proof(right: .anonymous), now: 0)
    slot.count(.tracks([try SyntheticMedia.video(), try SyntheticMedia.audio()]), now: 0)
    for index in 0..<10 { slot.count(.sample(SyntheticMedia.frame(index, group: 8)), now: 0) }
    slot.count(.discontinuity, now: 0)
    slot.count(.sample(SyntheticMedia.audio(0)), now: 0)
    for index in 10..<20 { slot.count(.sample(SyntheticMedia.frame(index, group: 8)), now: 0) }
    let counted = slot.counters.intake
    #expect(counted.frames == 14 && counted.lostFrames == 6 && counted.keyFrames == 3 && counted.audioFrames == 1)
  }

  // MARK: The epoch's life

  private func life(_ phase: StreamPhase = .live) throws -> EpochLife {
    var driver = EpochDriver()
    try driver.publish(seconds: 10)
    return EpochLife(driver.epoch, phase, startedAt: 1, knownGroup: nil, now: 0)
  }

  @Test func nothingOfAnEpochLivesOnInTheNext() throws {
    var life = try life()
    life.awaitsSegment = true
    #expect(life.wantsKeyFrame(after: .zero, isAwaited: false, of: nil) == false, "no worker runs")
    let seen = life.view()
    life.enter(.ended, now: 5)
    #expect(life.offAirSince == 5)
    life.renew(with: Epoch(id: "next", settings: StreamSettings()), startedAt: 9, now: 10)
    #expect(!life.awaitsSegment && life.phase == .starting && life.offAirSince == nil && life.startedAt == 9)
    #expect(life.view().renderings !== seen.renderings)
    #expect(life.knownGroup == MediaTime(milliseconds: 2000))
  }

  @Test func anEpochThatIsOverIsThereForAMinute() throws {
    var life = try life()
    let id = life.epoch.id
    life.renew(with: Epoch(id: "next", settings: StreamSettings()), startedAt: 9, now: 10)
    let end: MonotonicTime = 10 + StreamSettings.endedAvailability.nanoseconds
    #expect(life.forgetPrevious(now: end - 1) == false)
    #expect(life.view(ofEpoch: id)?.epoch.window.segments.isEmpty == false)
    #expect(life.window(ofEpoch: id, .video) != nil && life.view(ofEpoch: "unknown") == nil)
    #expect(life.forgetPrevious(now: end) && life.view(ofEpoch: id) == nil)
  }

  @Test func whoSeesSomethingMayTellTheTimeOfDay() throws {
    var empty = EpochLife(Epoch(id: "e", settings: StreamSettings()), .starting, startedAt: 1, knownGroup: nil, now: 0)
    _ = empty.view()
    #expect(!empty.epoch.isDated)
    var life = try life()
    _ = life.view(ofEpoch: life.epoch.id)
    #expect(life.epoch.isDated)
  }

  @Test func theOldEpochGoesFirstWhereMemoryIsShort() throws {
    var life = try life()
    let id = life.epoch.id
    let held = life.heldBytes
    life.renew(with: Epoch(id: "next", settings: StreamSettings()), startedAt: 9, now: 10)
    #expect(life.heldBytes == held)
    life.shrink(to: 0)
    #expect(life.heldBytes == 0 && life.view(ofEpoch: id) == nil)
  }

  // MARK: Who follows

  private final class Sink: FragmentSink {
    let isClosing: Bool
    init(isClosing: Bool = false) { self.isClosing = isClosing }
    func receive(_ event: StoredEvent) {}
  }

  @Test func whoWasDetachedStaysAwayUntilTheNextEpoch() {
    var subscribers = Subscribers()
    #expect(
      subscribers.makeSinks(of: Epoch(id: "a", settings: StreamSettings())) { _, _ in [Sink()] }
        && subscribers.sinks.count == 1)
    subscribers.detach { _ in true }
    #expect(
      subscribers.makeSinks(of: Epoch(id: "a", settings: StreamSettings())) { _, _ in [Sink()] }
        && subscribers.sinks.isEmpty)
    subscribers.beginEpoch()
    #expect(
      subscribers.makeSinks(of: Epoch(id: "b", settings: StreamSettings())) { _, _ in [Sink()] }
        && subscribers.sinks.count == 1)
  }

  @Test func tooManyOpenFilesAreToldAndMakeNoMore() {
    var subscribers = Subscribers()
    for number in 0..<ClosingSinks.limit {
      #expect(
        subscribers.makeSinks(of: Epoch(id: "\(number)", settings: StreamSettings())) { _, _ in [Sink(isClosing: true)]
        })
      subscribers.end()
    }
    #expect(
      !subscribers.makeSinks(of: Epoch(id: "last", settings: StreamSettings())) { _, _ in [Sink()] }
        && subscribers.sinks.isEmpty)
  }

  @Test func `Recordings that were stopped by hand count until their files are closed`() {
    var subscribers = Subscribers()
    #expect(
      subscribers.makeSinks(of: Epoch(id: "a", settings: StreamSettings())) { _, _ in
        (0..<ClosingSinks.limit - 1).map { _ in Sink(isClosing: true) }
      })
    subscribers.detach { _ in true }
    let hasRoom = subscribers.hasRoomForSinks()
    #expect(hasRoom)
    subscribers.beginEpoch()
    #expect(
      subscribers.makeSinks(of: Epoch(id: "b", settings: StreamSettings())) { _, _ in [Sink(isClosing: true), Sink()] })
    subscribers.detach { $0.isClosing }
    let stillHasRoom = subscribers.hasRoomForSinks()
    #expect(!stillHasRoom && subscribers.sinks.count == 1)
  }

  @Test func aLoopsViewersShareOneHandOver() {
    let loop = EmbeddedEventLoop()
    var subscribers = Subscribers()
    let (first, second) = (subscribers.join(on: loop), subscribers.join(on: loop))
    #expect(first.audience === second.audience && first.firstPosition == 1)
    #expect(subscribers.leave(loop) === first.audience)
    subscribers.end()
    #expect(subscribers.leave(loop) == nil, "nothing joins what is over")
  }

  // MARK: Warnings

  @Test func aWarningIsNewOnceAndGoesWithWhatItIsOf() throws {
    var warnings = StreamWarnings()
    #expect(warnings.add(.runsAhead) && !warnings.add(.runsAhead) && warnings.add(.neverCame(.audio)))
    warnings.withdraw(missing: [try SyntheticMedia.audio()])
    #expect(warnings.texts == ["\(PublicationWarning.runsAhead)"])
    var driver = EpochDriver()
    try driver.publish(seconds: 20, group: 150)
    let target = MediaTime(milliseconds: 2000)
    #expect(warnings.judge(driver.epoch, segmentTarget: target, of: .asItsEncoderHasThem) != nil)
    #expect(warnings.judge(driver.epoch, segmentTarget: target, of: .asItsEncoderHasThem) == nil, "it is known")
    #expect(warnings.texts.count == 2)
    warnings.beginPublication()
    #expect(warnings.texts.count == 1)
    warnings.beginEpoch()
    #expect(warnings.texts.isEmpty)
  }

  /// A slate has few frames in a hidden tab, and none while a camera is opened: nobody can set the distance of key frames there.
  @Test func whereTheServerDecidesWhenKeyFramesComeAPauseIsNoWarning() throws {
    var driver = EpochDriver()
    try driver.publish(seconds: 20, group: 150)
    let target = MediaTime(milliseconds: 2000)
    var warnings = StreamWarnings()
    #expect(warnings.judge(driver.epoch, segmentTarget: target, of: .asAsked) == nil)
    #expect(warnings.judge(driver.epoch, segmentTarget: target, of: .every(target)) == nil)
    #expect(warnings.texts.isEmpty)
    let far = PublishRequest.KeyFrames.every(MediaTime(milliseconds: 5000))
    #expect(warnings.judge(driver.epoch, segmentTarget: target, of: far) != nil, "that is a setting of this server")
  }
}
