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
    guard entries[key] != nil || (entries.count < Self.limit && hasFolder(for: recording)) else { return }
    var recording = recording
    let others = entries.values.lazy.map(\.recording.folder)
    if let same = others.first(where: { $0.isSame(as: recording.folder) }) { recording.folder = same }
    entries[key] = Entry(recording: recording, pause: min(pause &* 2, Self.longestPause), due: now &+ pause)
  }

  private func hasFolder(for recording: UnfinishedRecording) -> Bool {
    let folders = Set(entries.values.map { ObjectIdentifier($0.recording.folder) })
    return folders.count < Self.folderLimit
      || entries.values.contains { $0.recording.folder.isSame(as: recording.folder) }
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
