/// Recordings that the disk did not let be finished, and when they are tried again. A value.
struct PostponedRecordings: Sendable {
  private struct Entry: Sendable {
    var recording: UnfinishedRecording
    /// Nanoseconds until the next try after this one.
    var pause: Int64
    /// On the monotonic clock; nil while it is being tried.
    var due: Int64?
  }

  private var entries: [RecordingKey: Entry] = [:]

  /// In nanoseconds; doubled with each try that fails.
  static let firstPause: Int64 = 10_000_000_000
  static let longestPause: Int64 = 600_000_000_000
  /// More than these are left to the next start.
  static let limit = 1000
  /// Each stream's folder is open meanwhile; more than these are left to the next start, too.
  static let folderLimit = 32

  /// A try of it failed.
  mutating func add(_ recording: UnfinishedRecording, at now: Int64) {
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

  /// Nothing is to be done about it any more.
  mutating func remove(_ recording: UnfinishedRecording) {
    entries[RecordingKey(stream: recording.stream, name: recording.name)] = nil
  }

  /// Those that are to be tried now.
  mutating func due(at now: Int64) -> [UnfinishedRecording] {
    let keys = entries.filter { entry in entry.value.due.map { $0 <= now } ?? false }.keys
    for key in keys { entries[key]?.due = nil }
    return keys.compactMap { entries[$0]?.recording }
  }
}
