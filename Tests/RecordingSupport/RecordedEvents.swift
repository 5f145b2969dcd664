package import RecordingFiles
internal import Synchronization

/// What was told of recordings.
package final class RecordedEvents: RecordingObserver {
  package init() {}

  private let events = Mutex<[RecordingEvent]>([])

  package var all: [RecordingEvent] { events.withLock { $0 } }
  /// Without the mere progress.
  package var steps: [RecordingEvent.Kind] { all.map(\.kind).filter { $0 != .progressed } }

  package func receive(_ event: RecordingEvent) {
    events.withLock { $0.append(event) }
  }
}
