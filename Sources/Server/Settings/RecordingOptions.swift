internal import Base
internal import LocalSources
internal import Recording
internal import RecordingFiles

/// What is recorded, where, how, and how long it is kept.
package struct RecordingOptions: TitledSettings {
  package static let title = "Recordings"

  package let record = Setting(
    "record", at: "recordings.folder", .folder, default: "./recordings", "Folder for recordings.")
  let noRecord = Setting(switch: "no-record", at: "recordings.disabled", opposite: "record", "Record nothing.")
  let recordMode = Setting<RecordingPolicy.Start>(
    "record-mode", at: "streams.*.record.mode", .word, default: "auto",
    "Record streams by themselves, when asked over the API, or never.")
  let recordName = Setting(
    "record-name", at: "streams.*.record.name", SettingText("pattern", RecordingNaming.init(parsing:)),
    default: "{stream}/{time}",
    "Names of recordings: {stream}/, then {stream}, {time} or {year} … {second} (UTC).")
  let recordTracks = Setting(
    "record-tracks", at: "streams.*.record.tracks",
    SettingText(
      "all|audio|video|track,…",
      values: .pattern("^(all|(audio|video)(-[0-9]{1,2})?(,(audio|video)(-[0-9]{1,2})?)*)$"), AudioTracksText.choice),
    default: "all", "Tracks that are recorded: all of a kind, or these: video,audio-2.")
  let recordFallback = Setting(
    switch: "record-fallback", at: "streams.*.record.fallback",
    "Record what the fallback puts in the place of a lost publisher, too.")
  let recordSync = Setting(
    "record-sync", at: "streams.*.record.sync", .nanoseconds(.zero ... .seconds(60)), default: "1s",
    "How much of a recording a power failure may take.")
  let recordSplit = Setting(
    "record-split", at: "streams.*.record.split",
    SettingText(
      "duration", values: .pattern(#"^(each:)?[0-9]+(\.[0-9]{1,9})?(ms|s|m|min|h|d)$"#), RecordingSplit.init(parsing:)),
    "Another file at each whole 1h, 30m … (UTC), or each:1h after so much.")
  let recordMaxDuration = Setting(
    "record-max-duration", at: "streams.*.record.maxDuration", .ofRecording, "Length at which a recording is complete.")
  let recordMaxSize = Setting(
    "record-max-size", at: "streams.*.record.maxSize", .size, "Size at which a recording is complete.")
  let recordMaxFiles = Setting(
    "record-max-files", at: "streams.*.record.maxFiles", .count(1...100_000), default: "120",
    "Files that a stream may begin in an hour, beside those of --record-split.")
  let keepFree = Setting(
    "keep-free", at: "recordings.keepFree", .size, default: "1GB", "Recording stops below this much free disk.")
  let retainAge = Setting(
    "retain-age", at: "recordings.retain.age", .nanoseconds(.seconds(1) ... .seconds(3_153_600_000)),
    "Recordings are deleted this long after they ended.")
  let retainSize = Setting(
    "retain-size", at: "recordings.retain.size", .size, "The oldest recordings are deleted beyond this size of all.")
  let retainStreamSize = Setting(
    "retain-stream-size", at: "recordings.retain.streamSize", .size, "The same for each stream's own.")
  let retainDeleted = Setting(
    "retain-deleted", at: "recordings.retain.deleted", .nanoseconds(.zero ... .seconds(31_536_000)), default: "1h",
    "How long a deleted recording can be restored.")
  let whenFull = Setting<RetentionSettings.WhenFull>(
    "when-full", at: "recordings.whenFull", .word, default: "stop",
    "At --keep-free: stop recording, or let the oldest recordings go.")

  package init() {}

  /// Nil if nothing is recorded. On one command line, `--record` and `--no-record` contradict each other. A flag wins over a
  /// variable. Among variables, which may come from several files, off wins: a unit file names a folder for installations that
  /// want recordings.
  func folder(_ given: SettingSources) throws(ConfigurationError) -> String? {
    if try given[noRecord] {
      switch (given.texts(of: noRecord).last?.origin, given.texts(of: record).last?.origin) {
      case (.flag, .flag):
        throw given.error(noRecord, "\(record.name.flag) asks for the opposite", "keep one of the two")
      case (.variable, .flag), (.file, .flag), (.file, .variable): break
      default: return nil
      }
    }
    return try given[record]
  }

  func policy(_ given: SettingSources) throws(ConfigurationError) -> RecordingPolicy {
    var policy = RecordingPolicy()
    policy.start = try given[recordMode]
    policy.naming = try given[recordName]
    policy.tracks = try given[recordTracks]
    policy.syncInterval = try given[recordSync]
    policy.split = try given[recordSplit] ?? .never
    policy.maximumDuration = try given[recordMaxDuration]
    policy.maximumBytes = try given[recordMaxSize].map { UInt64(clamping: $0) }
    policy.filesPerHour = try given[recordMaxFiles]
    policy.holdsFallback = try given[recordFallback]
    return policy
  }

  func retention(_ given: SettingSources) throws(ConfigurationError) -> RetentionSettings {
    var retention = RetentionSettings()
    retention.maximumAge = try given[retainAge]
    retention.maximumBytes = try given[retainSize]
    retention.maximumBytesPerStream = try given[retainStreamSize]
    retention.whenFull = try given[whenFull]
    retention.undoTime = try given[retainDeleted]
    return retention
  }
}

extension SettingText<Int64> {
  /// Allowed lengths of recordings and their files, in nanoseconds.
  fileprivate static var ofRecording: Self { .nanoseconds(.seconds(1) ... .seconds(366 * 86_400)) }
}

extension RecordingSplit {
  /// Parses `1h`: at every whole hour of the day; `each:90m`: after each ninety minutes.
  init(parsing text: String) throws(ValueError) {
    let parse = SettingText<Int64>.ofRecording.parse
    if let length = text.rest(after: "each:") {
      self = .length(try parse(length))
      return
    }
    let period = try parse(text)
    guard 86_400_000_000_000 % period == 0 else {
      throw ValueError(
        "a day cannot be divided into whole periods of that length",
        advice: "use each:\(text), or 10m, 30m, 1h, 6h, 24h")
    }
    self = .clock(period)
  }
}
