package import Base
package import RecordingFiles
internal import Synchronization

/// Counters of recording events, lost seconds and finishing times since the start of the server.
package final class RecordingCounters: RecordingObserver {
  /// Why media is missing.
  package enum Cause: String, CaseIterable, Sendable {
    case publisher
    case disk
  }

  package struct Figures: Sendable {
    /// By kind of event.
    package var events: [String: Int] = [
      "started": 0, "stopped": 0, "stored": 0, "failed": 0, "cancelled": 0, "salvaged": 0, "deleted": 0,
    ]
    /// Seconds.
    package var lost: [Cause: Double] = [.publisher: 0, .disk: 0]
    /// By the way in which the movie was made.
    package var finishing: [String: Durations] = [
      "filled": Durations(), "inserted": Durations(), "shared": Durations(), "copied": Durations(),
    ]
  }

  private let state = Mutex(Figures())

  var figures: Figures { state.withLock { $0 } }

  package func receive(_ event: RecordingEvent) {
    let name: String
    switch event.kind {
    case .progressed: return
    case .started: name = "started"
    case .stopped: name = "stopped"
    case .stored: name = "stored"
    case .failed: name = "failed"
    case .cancelled: name = "cancelled"
    case .salvaged: name = "salvaged"
    case .deleted: name = "deleted"
    }
    state.withLock { $0.events[name, default: 0] += 1 }
  }

  func lost(seconds: Double, _ cause: Cause) {
    state.withLock { $0.lost[cause, default: 0] += max(0, seconds) }
  }

  /// Adds the time that finishing a file took. A file left for a later copy is counted when it is copied.
  func finished(_ outcome: RecordingFile.Outcome, nanoseconds: Int64) {
    let way: String
    switch outcome {
    case .filled: way = "filled"
    case .inserted: way = "inserted"
    case .shared: way = "shared"
    case .copied: way = "copied"
    case .leftFragmented: return
    }
    state.withLock { $0.finishing[way, default: Durations()].add(nanoseconds: nanoseconds) }
  }
}
