internal import Ingest

/// How a stream's or a source's newest recording is.
struct RecordingStateAnswer: Encodable {
  let state: String
  /// Why it failed; of one that runs, what is wrong at the moment.
  let reason: String?
  let file: String?
  let seconds: Double
  let bytes: UInt64
  let gaps: [GapAnswer]

  init(_ recorder: Recorder) { self.init(recorder.state, warning: recorder.warning) }

  init(_ state: RecordingState, warning: String? = nil) {
    var (known, told): (RecordingProgress?, String?) = (nil, warning)
    switch state {
    case .idle: self.state = "idle"
    case .cancelled: self.state = "cancelled"
    case .running(let progress): (self.state, known) = ("running", progress)
    case .completed(let progress): (self.state, known) = ("completed", progress)
    case .failed(let progress, let reason): (self.state, known, told) = ("failed", progress, reason)
    }
    (reason, file, seconds) = (told, known?.file, known?.seconds ?? 0)
    (bytes, gaps) = (known?.bytes ?? 0, (known?.gaps ?? []).map(GapAnswer.init))
  }
}

/// Where media is missing.
struct GapAnswer: Encodable {
  let at: Double
  let seconds: Double
  let reason: String

  init(_ gap: RecordingGap) { (at, seconds, reason) = (gap.at, gap.seconds, gap.reason) }
}

/// A page of `/api/v1/recordings`, and what `weir record list --json` prints.
struct RecordingsAnswer: Encodable {
  let recordings: [EntryAnswer]
  let next: String?
  let total: Int
  let complete: Bool

  init(_ page: CataloguePage, undoSeconds: Int64? = nil) {
    recordings = page.entries.map { EntryAnswer($0, undoSeconds: undoSeconds) }
    next = page.next?.description
    (total, complete) = (page.total, page.isComplete)
  }
}

/// A recording of the catalogue.
struct EntryAnswer: Encodable {
  let stream: String
  let file: String
  let state: String
  /// These two are null for what cannot be played: it is being written, or its file was not finished.
  let url: String?
  let thumbnail: String?
  let bytes: Int
  let seconds: Double
  let startedAt: String
  let codecs: [String]
  let gaps: [GapAnswer]
  let reason: String?
  let salvaged: Bool
  let protected: Bool
  let finishing: Double?
  let deletedAt: String?
  let restorableUntil: String?

  /// `undoSeconds`: how long a deletion can be taken back; nil where that is not known.
  init(_ entry: RecordingEntry, undoSeconds: Int64? = nil) {
    let base = "/recordings/\(entry.stream)/"
    let isServed = entry.isPlayable && entry.deletedAt == nil
    (stream, file, state) = (entry.stream.description, entry.file, entry.state.rawValue)
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
struct StorageAnswer: Encodable {
  let freeBytes: Int64?
  let totalBytes: Int64?
  let recordedBytes: Int64
  let deletedBytes: Int64
  let keepFreeBytes: Int64
  let undoSeconds: Int64
  let writable: Bool
}
