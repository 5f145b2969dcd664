internal import Base
internal import RecordingFiles

/// Recordings that could not be finished because of the disk, each with the time of its next attempt. A value.
struct PostponedRecordings: Sendable {
  private struct Entry: Sendable {
    var recording: UnfinishedRecording
    /// Nanoseconds from the next attempt to the one after it.
    var pause: Int64
    /// Time of the next attempt; nil during an attempt.
    var due: MonotonicTime?
  }

  private var entries: [RecordingKey: Entry] = [:]

  /// In nanoseconds. The pause doubles with each failed attempt.
  static let firstPause: Int64 = 10_000_000_000
  static let longestPause: Int64 = 600_000_000_000
  /// At most this many recordings; the next start finishes the others.
  static let limit = 1000
  /// At most this many folders, because each keeps a descriptor open. The next start finishes the others.
  static let folderLimit = 32

  /// An attempt to finish the recording failed.
  mutating func add(_ recording: UnfinishedRecording, at now: MonotonicTime) {
    let key = RecordingKey(stream: recording.stream, name: recording.name)
    let pause = entries[key]?.pause ?? Self.firstPause
    let folders = entries.values.lazy.map(\.recording.folder)
    let known = folders.first { $0.isSame(as: recording.folder) }
    if entries[key] == nil {
      let hasFolder = known != nil || Set(folders.map(ObjectIdentifier.init)).count < Self.folderLimit
      guard entries.count < Self.limit, hasFolder else { return }
    }
    var recording = recording
    recording.folder = known ?? recording.folder
    entries[key] = Entry(recording: recording, pause: min(pause &* 2, Self.longestPause), due: now &+ pause)
  }

  /// The recording needs no further attempt.
  mutating func remove(_ recording: UnfinishedRecording) {
    entries[RecordingKey(stream: recording.stream, name: recording.name)] = nil
  }

  var isEmpty: Bool { entries.isEmpty }

  /// The recordings whose next attempt is due.
  mutating func due(at now: MonotonicTime) -> [UnfinishedRecording] {
    let keys = entries.filter { entry in entry.value.due.map { $0 <= now } ?? false }.keys
    for key in keys { entries[key]?.due = nil }
    return keys.compactMap { entries[$0]?.recording }
  }
}
