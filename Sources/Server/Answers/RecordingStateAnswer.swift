internal import FMP4
internal import Publishing
package import Recording
package import RecordingFiles

/// The state of the newest recording of a stream or a source.
package struct RecordingStateAnswer: APIObject {
  package let state: String
  /// Why it failed, or the present problem of a running recording.
  let reason: String?
  package let file: String?
  let seconds: Double
  let bytes: UInt64
  let gaps: [GapAnswer]

  package static let notes: [String: FieldNote] = [
    "state": .words(["idle", "running", "completed", "failed", "cancelled"], "idle: it waits for the first media."),
    "reason": "Why it failed, or the present problem of a running one.",
    "seconds": "Of media.",
  ]

  package init(_ recorder: Recorder) { self.init(recorder.state, warning: recorder.warning) }

  init(_ state: RecordingState, warning: String? = nil) {
    var (known, problem): (RecordingProgress?, String?) = (nil, warning)
    switch state {
    case .idle: self.state = "idle"
    case .cancelled: self.state = "cancelled"
    case .running(let progress): (self.state, known) = ("running", progress)
    case .completed(let progress): (self.state, known) = ("completed", progress)
    case .failed(let progress, let reason): (self.state, known, problem) = ("failed", progress, reason)
    }
    (reason, file, seconds) = (problem, known?.file, known?.seconds ?? 0)
    (bytes, gaps) = (known?.bytes ?? 0, (known?.gaps ?? []).map(GapAnswer.init))
  }
}

/// A place where media is missing.
struct GapAnswer: APIObject {
  let at: Double
  let seconds: Double
  let reason: String

  init(_ gap: RecordingGap) { (at, seconds, reason) = (gap.at, gap.seconds, gap.reason) }
}

/// A page of `/api/v1/recordings`, and what `weir record list --json` prints.
package struct RecordingsAnswer: APIObject {
  package let recordings: [EntryAnswer]
  let next: String?
  let total: Int
  let complete: Bool

  package static let notes: [String: FieldNote] = [
    "next": "The cursor of the next page; null for the last one.",
    "total": "Of all pages; 10,000 stands for that many or more.",
    "complete": "False while the folders are being read after a start.",
  ]

  package init(_ page: CataloguePage, undoSeconds: Int64? = nil, base: String = "") {
    recordings = page.entries.map { EntryAnswer($0, undoSeconds: undoSeconds, base: base) }
    next = page.next?.description
    (total, complete) = (page.total, page.isComplete)
  }
}

/// A recording of the catalogue.
package struct EntryAnswer: APIObject {
  package let stream: String
  package let file: String
  /// The name that a client gave to it, or null.
  let name: String?
  let note: String?
  package let state: String
  /// These two are null if the recording cannot be played: it is being written, or its file was not finished.
  let url: String?
  let thumbnail: String?
  package let bytes: Int
  package let seconds: Double
  package let startedAt: String
  let codecs: [String]
  let gaps: [GapAnswer]
  let reason: String?
  let salvaged: Bool
  let protected: Bool
  let finishing: Double?
  package let deletedAt: String?
  package let restorableUntil: String?

  package static let notes: [String: FieldNote] = [
    "name": "As a client named it.",
    "note": "What a client noted about it.",
    "state": .words(RecordingEntry.State.allCases.map(\.rawValue), "Of its file."),
    "url": "Null while it cannot be played: it is written, or its file was not finished.",
    "thumbnail": "Null like url.",
    "startedAt": .time("When its first frame was made."),
    "codecs": "Of each track (RFC 6381).",
    "reason": "Why it failed.",
    "salvaged": "It was finished after its process had ended.",
    "protected": "It is not deleted, neither by retention nor over the API.",
    "finishing": "0 to 1 while its file is finished.",
    "deletedAt": .time("When it was deleted."),
    "restorableUntil": .time("Until then a deletion can be taken back."),
  ]

  /// `undoSeconds`: seconds for which a deletion can be undone; nil if not known. `base`: what absolute paths begin with.
  package init(_ entry: RecordingEntry, undoSeconds: Int64? = nil, base: String = "") {
    let base = "\(base)/recordings/\(entry.stream)/"
    let isServed = entry.isPlayable && entry.deletedAt == nil
    (stream, file, name, state) = (entry.stream.description, entry.file, entry.shownTitle, entry.state.rawValue)
    note = entry.annotation.note
    (url, thumbnail) = isServed ? (base + entry.file, "\(base)\(entry.name.stem).jpg") : (nil, nil)
    (bytes, seconds) = (entry.bytes, (entry.seconds * 1000).rounded() / 1000)
    (startedAt, deletedAt) = (JSONText.time(entry.startedAt), entry.deletedAt.map(JSONText.time))
    (codecs, gaps, reason) = (entry.codecs, entry.gaps.map(GapAnswer.init), entry.reason)
    (salvaged, protected) = (entry.isSalvaged, entry.isProtected)
    restorableUntil = entry.deletedAt.flatMap { deletedAt in
      undoSeconds.map { JSONText.time(deletedAt &+ $0 &* 1_000_000_000) }
    }
    finishing = entry.finishing.map { ($0 * 1000).rounded() / 1000 }
  }
}

/// `/api/v1/storage`.
package struct StorageAnswer: APIObject {
  let freeBytes: Int64?
  let totalBytes: Int64?
  let recordedBytes: Int64
  let deletedBytes: Int64
  let keepFreeBytes: Int64
  let undoSeconds: Int64
  let writable: Bool

  package init(
    freeBytes: Int64?, totalBytes: Int64?, recordedBytes: Int64, deletedBytes: Int64, keepFreeBytes: Int64,
    undoSeconds: Int64, writable: Bool
  ) {
    (self.freeBytes, self.totalBytes, self.recordedBytes, self.deletedBytes, self.keepFreeBytes) = (
      freeBytes, totalBytes, recordedBytes, deletedBytes, keepFreeBytes
    )
    (self.undoSeconds, self.writable) = (undoSeconds, writable)
  }

  package static let notes: [String: FieldNote] = [
    "deletedBytes": "Of recordings that can still be restored.",
    "keepFreeBytes": "Room that recordings leave to others (--keep-free).",
    "undoSeconds": "How long a deletion can be taken back.",
    "writable": "Whether an admin token is configured.",
  ]
}
