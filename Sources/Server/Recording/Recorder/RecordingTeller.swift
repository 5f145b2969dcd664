internal import Base
internal import Control
internal import Publishing
internal import RecordingFiles

/// Tells of recordings in the log of events. Each is written before the file has its final name, or before a client gets the
/// response; and it is shown once the file has that name. Runs on the threads of recordings, which may wait.
final class RecordingTeller: RecordingObserver {
  private let events: EventLog

  init(_ events: EventLog) { self.events = events }

  func receive(_ event: RecordingEvent) {
    let facts = event.facts
    switch event.kind {
    case .progressed, .stopped: break
    case .started: tell(.recordingStarted, facts, key: Self.key("started", facts))
    // These were told before. Where that was not possible they are told now, and otherwise the key says that it was done.
    case .stored: tellThere(.recordingStored, facts)
    case .salvaged: tellThere(.recordingSalvaged, facts)
    case .failed(let reason): tell(.recordingFailed, facts, key: Self.key("failed", facts), reason: reason)
    case .cancelled: tell(.recordingDeleted, facts, key: Self.key("deleted", facts), reason: "a client cancelled it")
    case .deleted(let reason): tell(.recordingDeleted, facts, key: Self.key("deleted", facts), reason: reason)
    }
  }

  func receive(_ prospect: RecordingProspect, _ facts: RecordingFacts) {
    switch prospect {
    case .stored: tell(.recordingStored, facts, key: Self.key("stored", facts), isHeld: true)
    case .salvaged: tell(.recordingSalvaged, facts, key: Self.key("stored", facts), isHeld: true)
    case .deleted(let who):
      tell(.recordingDeleted, facts, by: who, key: Self.key("deleted", facts), reason: "a client deleted it")
    case .removed(let reason): tell(.recordingDeleted, facts, key: Self.key("deleted", facts), reason: reason)
    case .restored: events.forget(key: Self.key("deleted", facts))
    }
  }

  /// The disk has less free space than is to be kept.
  func tellLow(freeBytes: Int64, keepFree: Int64, folder: String) {
    events.tell(
      .diskLow, ["freeBytes": .whole(freeBytes), "keepFreeBytes": .whole(keepFree), "folder": .text(folder)])
  }

  /// Of a file that has its final name.
  private func tellThere(_ kind: EventKind, _ facts: RecordingFacts) {
    let key = Self.key("stored", facts)
    tell(kind, facts, key: key)
    events.show(key: key)
  }

  private func tell(
    _ kind: EventKind, _ facts: RecordingFacts, by who: String? = nil, key: String, isHeld: Bool = false,
    reason: String? = nil
  ) {
    let file = facts.name.finished
    events.tell(
      kind, of: facts.stream.description, by: who, key: key, subject: "\(facts.stream)/\(file)", isHeld: isHeld,
      [
        "file": .text(file),
        "startedAt": .text(UTCText(facts.startedAt).internet), "durationSeconds": .number(facts.seconds),
        "bytes": .whole(Int64(clamping: facts.bytes)), "codecs": .list(facts.codecs.map(EventValue.text)),
        "gaps": .list(
          facts.gaps.map {
            ["atSeconds": .number($0.at), "seconds": .number($0.seconds), "reason": .text($0.reason)]
          }), "reason": .text(orNull: reason ?? facts.failure), "url": .text("/recordings/\(facts.stream)/\(file)"),
      ]
    ).wait()
  }

  private static func key(_ what: String, _ facts: RecordingFacts) -> String {
    "\(what):\(facts.stream)/\(facts.name.finished)"
  }
}
