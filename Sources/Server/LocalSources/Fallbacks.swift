package import Base
package import FMP4
internal import Local
package import Logging
internal import NIOCore
package import Publishing
package import Streams
internal import Synchronization

/// The media of fallbacks: the test pattern, films and pictures of this machine, other streams. Safe to use from any thread.
package final class Fallbacks: FallbackSources {
  private struct State {
    /// By path.
    var files: [String: FallbackMedia] = [:]
    /// What is shown in place of the test pattern while all encoders are taken.
    var testCard: StillPicture?
    /// Test patterns that are being encoded.
    var encoding = 0
  }

  /// Test patterns that are encoded at a time; beyond it their first picture stands still.
  static let mostEncoders = max(1, System.coreCount)

  private let streams: StreamRegistry
  private let segmentTarget: @Sendable (StreamName) -> MediaTime
  private let clock: SteadyClock
  private let logger: Logger
  private let state = Mutex(State())

  /// `segmentTarget` is the length at which a stream's segments aim.
  package init(
    streams: StreamRegistry, segmentTarget: @escaping @Sendable (StreamName) -> MediaTime, clock: SteadyClock,
    logger: Logger
  ) {
    (self.streams, self.segmentTarget, self.clock, self.logger) = (streams, segmentTarget, clock, logger)
  }

  /// Opens and checks a file, and keeps what it is. Throws why it cannot be a fallback.
  package func check(path: String) throws {
    let media = try FallbackMedia(path: path)
    state.withLock { $0.files[path] = media }
  }

  package func begin(
    _ fallback: Fallback, of stream: StreamName, through gate: any PublishGate
  ) -> (any FallbackRun)? {
    switch fallback {
    case .test:
      guard takeEncoder() else { return still(stream, gate) }
      let settings = TestSourceSettings.demo(segmentDuration: .seconds(segmentTarget(stream).seconds))
      let source = TestSource(name: stream, settings: settings, gate: gate, clock: clock, logger: logger)
      return SourceRun(source) { [weak self] in self?.state.withLock { $0.encoding -= 1 } }
    case .file(let path):
      guard case .picture(let picture)? = state.withLock({ $0.files[path] }) else {
        return SourceRun(FileSource(name: stream, path: path, gate: gate, clock: clock, logger: logger))
      }
      return SourceRun(StillSource(name: stream, picture: picture, gate: gate, clock: clock, logger: logger))
    case .stream(let other):
      return streams.stream(other).flatMap { StreamRelay(from: $0, to: gate, of: stream) }
    }
  }

  private func takeEncoder() -> Bool {
    state.withLock { state in
      guard state.encoding < Self.mostEncoders else { return false }
      state.encoding += 1
      return true
    }
  }

  private func still(_ stream: StreamName, _ gate: any PublishGate) -> (any FallbackRun)? {
    let known = state.withLock { $0.testCard }
    do {
      let picture = try known ?? StillPicture(testCard: TestSourceSettings(), at: clock.wallTime)
      state.withLock { $0.testCard = picture }
      return SourceRun(StillSource(name: stream, picture: picture, gate: gate, clock: clock, logger: logger))
    } catch {
      logger.error("the test pattern cannot be a fallback: \(error)")
      return nil
    }
  }
}

/// A source that runs until it is stopped.
private final class SourceRun: FallbackRun {
  private let source: any MediaSource

  /// `whenOver` is called when it has ended.
  init(_ source: any MediaSource, whenOver: @escaping @Sendable () -> Void = {}) {
    self.source = source
    Task {
      _ = await source.run()
      whenOver()
    }
  }

  func stop() { source.stop(.finished) }
}
