internal import Basics
internal import FMP4
internal import Ingest

/// The server's own sources, from their start until they have given out all that their encoders hold.
final class LocalSources: Sendable {
  /// In the order in which they were given.
  let all: [LocalSource]
  private let named: [StreamName: LocalSource]
  private let haveEnded = Latch()

  /// An encoder that takes longer to give out what it holds, loses it.
  private static let longestFlush = Duration.seconds(2)

  /// - Parameter sources: no two of one name.
  init(_ sources: [LocalSource]) {
    all = sources
    named = Dictionary(sources.map { ($0.name, $0) }) { first, _ in first }
  }

  subscript(name: StreamName) -> LocalSource? { named[name] }

  /// Runs all of them until the server stops.
  func run() async {
    await withTaskGroup(of: Void.self) { group in
      for source in all { group.addTask { await source.run() } }
    }
    haveEnded.set()
  }

  /// Ends them, and waits for what belongs to their streams and recordings still.
  func stop() async {
    for source in all { source.shutDown() }
    if !all.isEmpty { _ = await haveEnded.wait(patience: Self.longestFlush) }
  }
}
