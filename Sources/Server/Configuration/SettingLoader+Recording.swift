internal import Basics

extension SettingLoader {
  func recordingPolicy() throws(ConfigurationError) -> RecordingPolicy {
    var policy = RecordingPolicy()
    policy.start = try required(.recordMode, WordList.parse)
    policy.naming = try required(.recordName, RecordingNaming.init(parsing:))
    policy.syncInterval = try duration(.recordSync, ServerConfiguration.Limits.recordSync).wholeMilliseconds * 1_000_000
    policy.split = try optional(.recordSplit, RecordingSplit.init(parsing:)) ?? .never
    policy.maximumDuration = try optional(.recordMaxDuration) { text throws(ValueError) in
      try RecordingSplit.nanoseconds(text)
    }
    policy.filesPerHour = try count(.recordMaxFiles, ServerConfiguration.Limits.perMinute)
    policy.maximumBytes = try optional(.recordMaxSize, ByteSizeText.parse).map { UInt64(clamping: $0) }
    return policy
  }
}

extension RecordingSplit {
  /// Parses `1h`: at every whole hour of the day; `each:90m`: after each ninety minutes.
  init(parsing text: String) throws(ValueError) {
    if text.hasPrefix(Self.lengthPrefix) {
      self = .length(try Self.nanoseconds(String(text.dropFirst(Self.lengthPrefix.count))))
      return
    }
    let period = try Self.nanoseconds(text)
    guard Self.day % period == 0 else {
      throw ValueError(
        "a day has no whole number of them", advice: "use \(Self.lengthPrefix)\(text), or 10m, 30m, 1h, 6h, 24h")
    }
    self = .clock(period)
  }

  private static let lengthPrefix = "each:"
  private static let day: Int64 = 86_400_000_000_000

  static func nanoseconds(_ text: String) throws(ValueError) -> Int64 {
    let duration = try DurationText.parse(text)
    let range = ServerConfiguration.Limits.recordDuration
    guard range.contains(duration) else {
      let (least, most) = (DurationText.text(range.lowerBound), DurationText.text(range.upperBound))
      throw ValueError("it is outside \(least) to \(most)", advice: "choose a duration in that range")
    }
    return duration.wholeMilliseconds * 1_000_000
  }
}
