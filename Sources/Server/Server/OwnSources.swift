internal import FMP4
internal import Ingest
internal import Synchronization

/// The server's own sources, from their start until they have given out all that their encoders hold.
final class OwnSources: Sendable {
  private let sources: [any MediaSource]
  private let ended = Mutex(0)

  /// An encoder that takes longer to give out what it holds, loses it.
  private static let longestFlush = Duration.seconds(2)

  init(_ sources: [any MediaSource]) { self.sources = sources }

  /// Runs all of them until each has ended.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      for source in sources {
        group.addTask {
          await source.run()
          self.ended.withLock { $0 += 1 }
        }
      }
    }
  }

  /// Ends them, and waits for what belongs to their streams and recordings still.
  func stop() async {
    for source in sources { source.stop(.shutdown) }
    let latest = ContinuousClock.now + Self.longestFlush
    while ended.withLock({ $0 }) < sources.count, ContinuousClock.now < latest {
      try? await Task.sleep(for: .milliseconds(5))
    }
  }
}
