import Base
import FMP4
import Glibc
import Local
import Logging
import Publishing
@testable import Streams
import Synchronization
import Testing
import Transcode

/// A source of the server's own, whose key frames are far apart, and a transcoder that is lost.
@Suite struct LadderRecoveryTests {
  private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

  /// Workers that are threads of the test. The first takes what it is given for a second, makes nothing, and is gone.
  private func launcher(_ starts: Starts) -> WorkerLauncher {
    WorkerLauncher { () throws(WorkerFailure) in
      var ends: [Int32] = [-1, -1]
      guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0 else {
        throw WorkerFailure("socketpair", errno)
      }
      let (own, other) = (ends[0], ends[1])
      let isFirst = starts.count.wrappingAdd(1, ordering: .relaxed).oldValue == 0
      do {
        try DedicatedThread.start(named: "worker") {
          if isFirst { Self.swallow(other) } else { TranscodeWorker(descriptor: other).run() }
          close(other)
        }
      } catch {
        throw WorkerFailure("\(error)", 0)
      }
      return RunningWorker(socket: own, processID: nil) {
        close(own)
        return "it was told to"
      }
    }
  }

  private final class Starts: Sendable {
    let count = Atomic(0)
  }

  private static func swallow(_ socket: Int32) {
    let until = ContinuousClock.now + .seconds(1)
    var bytes = [UInt8](repeating: 0, count: 65_536)
    while ContinuousClock.now < until, recv(socket, &bytes, bytes.count, 0) > 0 {}
  }

  @Test(.timeLimit(.minutes(1))) func theSourcesEncoderIsAskedForAKeyFrameWhereRungsCanBegin() async throws {
    let starts = Starts()
    let name = try #require(StreamName("cam"))
    let registry = StreamRegistry(
      settings: { _ in
        var settings = StreamSettings()
        settings.ladder = [RungSpecification(shortSide: 90, bitRate: 100_000)]
        settings.layout = .separate
        return settings
      },
      workers: launcher(starts), clock: .system(), logger: logger
    ) { _, _, _, _ in [] }
    let source = TestSource(
      name: name,
      settings: TestSourceSettings(width: 320, height: 180, keyFrameInterval: 1800, videoBitRate: 300_000),
      gate: registry, clock: .system(), logger: logger)
    async let published = source.run()
    // Left to itself, the source's first segment lasts a minute.
    var isBack = false
    for _ in 0..<400 where !isBack {
      try await Task.sleep(for: .milliseconds(50))
      isBack = registry.stream(name)?.epoch.rungs.first?.window.segments.last?.fragments.isEmpty == false
    }
    let window = try #require(registry.stream(name)).epoch.window
    source.stop(.finished)
    _ = await published
    #expect(isBack && starts.count.load(ordering: .relaxed) == 2)
    let first = try #require(window.segments.first)
    #expect(first.isComplete && first.duration >= StreamSettings().segmentTarget)
    #expect(window.segments.count == 2, "it is asked once: \(window.segments.map(\.duration.seconds))")
  }
}
