internal import Base
package import Publishing

/// The local sources of the server, from their start until their encoders are flushed.
package final class SourceRegistry: Sendable {
  /// In the order of the configuration.
  package let all: [LocalSource]
  private let named: [StreamName: LocalSource]
  private let haveEnded = Latch()

  /// Limit for flushing an encoder; an encoder that takes longer loses the frames it holds.
  private static let longestFlush = Duration.seconds(2)

  /// - Parameter sources: no two have the same name.
  package init(_ sources: [LocalSource]) {
    all = sources
    named = Dictionary(sources.map { ($0.name, $0) }) { first, _ in first }
  }

  package subscript(name: StreamName) -> LocalSource? { named[name] }

  /// Whether any has devices open.
  package var isCapturing: Bool {
    all.contains { source in
      switch source.activity {
      case .live, .preview: source.kind == "capture"
      case .stopping, .stopped: false
      }
    }
  }

  /// Whether none does anything.
  package var areStopped: Bool {
    all.allSatisfy { source in
      switch source.activity {
      case .stopped: true
      case .live, .preview, .stopping: false
      }
    }
  }

  /// Runs all of them until the server stops.
  package func run() async {
    await withTaskGroup(of: Void.self) { group in
      for source in all { group.addTask { await source.run() } }
    }
    haveEnded.set()
  }

  /// Ends them, and waits for the media that still belongs to their streams and recordings.
  package func stop() async {
    for source in all { source.shutDown() }
    if !all.isEmpty { _ = await haveEnded.wait(patience: Self.longestFlush) }
  }
}
