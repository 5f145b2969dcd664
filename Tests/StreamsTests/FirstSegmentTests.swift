import Base
import FMP4
import Local
import Logging
import NIOCore
import NIOPosix
import Publishing
import Streams
import Testing

@Suite struct FirstSegmentTests {
  private let registry = StreamRegistry(
    settings: { _ in StreamSettings() }, clock: .system(),
    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
  ) { _, _, _, _ in [] }

  /// Publishes the test pattern with key frames ten seconds apart while the test looks at the stream.
  private func published(_ test: (LiveStream) async throws -> Void) async throws {
    let name = try #require(StreamName("cam"))
    let source = TestSource(
      name: name,
      settings: TestSourceSettings(width: 320, height: 180, keyFrameInterval: 300, videoBitRate: 300_000),
      gate: registry, clock: .system(), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    async let published = source.run()
    defer { source.stop(.finished) }
    while registry.stream(name)?.epoch.window.segments.isEmpty ?? true {
      try await Task.sleep(for: .milliseconds(10))
    }
    try await test(try #require(registry.stream(name)))
    source.stop(.finished)
    _ = await published
  }

  @Test(.timeLimit(.minutes(1))) func whoWaitsForTheFirstSegmentDoesNotWaitForALongGroup() async throws {
    try await published { stream in
      let loop = NIOSingletons.posixEventLoopGroup.any()
      guard case .later(let wait) = stream.wait(for: .release, on: loop, atMost: MediaTime(milliseconds: 20_000)) else {
        Issue.record("it is there at once")
        return
      }
      let window = try await wait.get().epoch.window
      let first = try #require(window.segments.first)
      #expect(first.isComplete && first.duration >= stream.settings.segmentTarget)
      #expect(first.duration < MediaTime(milliseconds: 5000), "\(first.duration.seconds) s")
      #expect(window.targetDuration == 10, "the promise is that of the groups to come")
    }
  }

  @Test(.timeLimit(.minutes(1))) func withoutAWaitingRequestTheEncoderKeepsItsCadence() async throws {
    try await published { stream in
      let target = stream.settings.segmentTarget + MediaTime(milliseconds: 800)
      while stream.epoch.window.segments[0].duration < target { try await Task.sleep(for: .milliseconds(20)) }
      #expect(!stream.epoch.window.segments[0].isComplete)
    }
  }
}
