import Base
import FMP4
import Logging
import Publishing
@testable import Streams
import StreamSupport
import Support
import Testing

/// Media that comes more slowly than it plays: what leaves the window for it.
@Suite struct SlowMediaTests {
  /// A stream of one publisher, and the clock by which its frames arrive.
  private final class Live: Sendable {
    let time: ManualClock
    let registry: StreamRegistry
    let stream: LiveStream
    private let sink: any MediaSink
    private let memory: WindowBudget

    /// `slow`: bytes that may have come too slowly.
    init(slow: Int, window: Int64 = 60) async throws {
      let time = ManualClock()
      let memory = WindowBudget(perStream: 256 << 20, inAll: 512 << 20, slowMedia: slow)
      let registry = StreamRegistry(
        settings: { _ in
          var settings = StreamSettings()
          settings.window = MediaTime(milliseconds: window * 1000)
          return settings
        }, memory: memory, clock: time.clock,
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      ) { _, _, _, _ in [] }
      let name = try #require(StreamName("cam"))
      let sink = try await registry.admit(
        PublishRequest(
          stream: name, key: nil, protocolName: "RTMP", remoteAddress: "10.0.0.1:5", host: "10.0.0.1"
        ) { _ in })
      let stream = try #require(registry.stream(name))
      _ = sink.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
      _ = sink.receive(.tracks([try SyntheticMedia.video()]))
      (self.time, self.registry, self.stream, self.sink, self.memory) = (time, registry, stream, sink, memory)
    }

    /// A frame that arrives so many seconds after the one before.
    func send(_ frame: Sample, after seconds: Double) {
      time.advance(seconds: seconds)
      _ = sink.receive(.sample(frame))
    }

    func lose() { _ = sink.receive(.end(.connectionLost("reset"))) }

    var heldBytes: Int { stream.state.withLock { $0.heldBytes } }
    /// As the budget knows them.
    var countedBytes: Int { memory.used }
    var window: LiveWindow { stream.epoch.window }
    var warnings: [String] { stream.state.withLock { $0.warnings.texts } }
  }

  private static let frame = 1.0 / 30

  /// Ticks of 30 kHz between frames that come 2.5 ms apart: the clock stands, or runs at a tenth.
  @Test(arguments: [1, 7]) func aClockThatStandsOrCrawlsKeepsAFixedAmount(_ ticks: Int64) async throws {
    let live = try await Live(slow: 8 << 20)
    var most = 0
    for index in 0..<240 {
      live.send(SyntheticMedia.frame(index, group: 1, duration: ticks, size: 256 << 10), after: 0.0025)
      most = max(most, live.heldBytes)
    }
    // A segment that is complete, one that grows, and a fragment on its way, each of 8 MiB and a frame.
    #expect(most <= 28 << 20, "\(most >> 20) MiB")
    #expect(live.warnings.contains { $0.contains("--stream-memory") }, "\(live.warnings)")
  }

  @Test func `The warning of too little memory goes when there was enough for as long as the window`() async throws {
    let live = try await Live(slow: 8 << 20, window: 10)
    var isWarned: Bool { live.warnings.contains { $0.contains("--stream-memory") } }
    for index in 0..<240 {
      live.send(SyntheticMedia.frame(index, group: 1, duration: 1, size: 256 << 10), after: 0.0025)
    }
    #expect(isWarned)
    for index in 1..<270 { live.send(SyntheticMedia.frame(index, size: 1000), after: Self.frame) }
    #expect(isWarned, "after nine seconds")
    for index in 270..<450 { live.send(SyntheticMedia.frame(index, size: 1000), after: Self.frame) }
    #expect(!isWarned, "\(live.warnings)")
  }

  @Test func aStreamThatKeepsPaceLosesNothingHoweverItsRateRises() async throws {
    let live = try await Live(slow: 1 << 20)
    for index in 0..<600 {
      // Nothing comes for four seconds, and then all of it.
      let pause = index == 150 ? 4 : 150..<270 ~= index ? 0 : Self.frame
      live.send(SyntheticMedia.frame(index, size: index < 300 ? 20_000 : 80_000), after: pause)
    }
    #expect(live.window.segments.first?.sequenceNumber == 1 && live.window.segments.count == 10)
    #expect(live.window.slowBytes == 0 && live.warnings.isEmpty, "\(live.warnings)")
  }

  @Test func asSlowlyAsAClockMayRunNothingIsLostEither() async throws {
    let live = try await Live(slow: 1 << 20)
    for index in 0..<600 { live.send(SyntheticMedia.frame(index, size: 20_000), after: Self.frame * 4) }
    #expect(live.window.segments.first?.sequenceNumber == 1 && live.window.slowBytes == 0)
  }

  @Test func whatCameLongerAgoThanTwiceTheWindowLeavesWhileOthersCome() async throws {
    let live = try await Live(slow: .max, window: 20)
    // A quarter of real time: in twice the window, of 20.5 s here, come five segments.
    for index in 0..<900 { live.send(SyntheticMedia.frame(index), after: Self.frame * 4) }
    let segments = live.window.segments
    #expect((5...7).contains(segments.count), "\(segments.count)")
    // Without a publisher it keeps the last window.
    live.lose()
    live.time.advance(seconds: 29)
    live.registry.tend()
    #expect(live.stream.status.phase == .reconnecting)
    #expect(live.window.segments.first?.sequenceNumber == segments.first?.sequenceNumber)
    live.time.advance(seconds: 30)
    live.registry.tend()
    #expect(live.stream.status.phase == .ended)
    #expect(live.window.segments.first?.sequenceNumber == segments.first?.sequenceNumber)
  }

  /// What waits for other tracks counts while no fragment is complete.
  @Test func mediaThatBecomesNoFragmentCounts() async throws {
    let live = try await Live(slow: .max)
    for index in 0..<3 { live.send(SyntheticMedia.frame(index, group: 1, duration: 1, size: 2 << 20), after: 0.001) }
    #expect(live.window.residentBytes < 6 << 20)
    #expect(live.countedBytes >= 4 << 20, "\(live.countedBytes)")
  }

  @Test func pausesDoNotMakeASegmentGrowForLongerThanTheWindow() throws {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(frameDuration: 3000)]))
    for index in 0..<60 {
      driver.epoch.noteArrival(of: 100_000_000, now: .at(Int64(index) * 3_000_000_000))
      try driver.receive(.sample(SyntheticMedia.frame(index, group: 1000, duration: 3000, size: 10, isSteady: true)))
      _ = driver.epoch.dropLate(slowBytes: .max)
    }
    #expect(driver.epoch.window.segments.map(\.isComplete) == [false])
  }

  @Test func aSegmentThatGrowsForLongerThanTheWindowIsCut() throws {
    var driver = EpochDriver()
    driver.epoch.startPublication()
    try driver.receive(.clock(WallClockAnchor(mediaTime: .zero, wallTime: EpochDriver.wall)))
    try driver.receive(.tracks([try SyntheticMedia.video(frameDuration: 3000)]))
    // A frame of 0.1 s each second, without another key frame. The window is 68.5 s as long as the target is undecided.
    for index in 0..<80 {
      driver.epoch.noteArrival(of: 100_000_000, now: .at(Int64(index) * 1_000_000_000))
      try driver.receive(.sample(SyntheticMedia.frame(index, group: 1000, duration: 3000, size: 10, isSteady: true)))
      _ = driver.epoch.dropLate(slowBytes: .max)
    }
    let segments = driver.epoch.window.segments
    #expect(segments.count == 2 && segments.first?.isComplete == true)
    #expect((6.9...7.2).contains(segments.first?.duration.seconds ?? 0))
  }
}
