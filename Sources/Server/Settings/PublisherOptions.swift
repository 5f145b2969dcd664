internal import Base
internal import Control
internal import LocalSources
internal import Publishing
internal import Streams

/// Keys and limits of publishers.
struct PublisherOptions: TitledSettings {
  static let title = "Publishers"

  let publishKey = Setting(
    "publish-key", at: "streams.*.publishKeys", "[name=]key", isSecret: true, shape: .list, split: PublishKeyText.list,
    "Key that publishers must give, of one name or of all; may be repeated; without one any client may publish.",
    read: PublishKeys.init)
  let maxStreams = Setting(
    "max-streams", at: "limits.streams", .count(1...100_000), default: "1000", "More streams are refused.")
  let streamMemory = Setting(
    "stream-memory", at: "limits.streamMemory", .mediaMemory,
    "Most media of one stream in memory; without it, a quarter of the memory, and 32 MiB of media that comes far too slowly."
  )
  let mediaMemory = Setting(
    "media-memory", at: "limits.mediaMemory", .mediaMemory,
    "Most media of all streams in memory; without it, half of the memory.")
  let maxNames = Setting(
    "max-names", at: "limits.names", .count(1...100_000), default: "64",
    "New names that an address without a key may take at once; a quarter of them more a minute.")

  let maxSRTConnections = Setting(
    "max-srt-connections", at: "limits.srtConnections", .count(1...600), default: "400",
    "SRT connections at a time, and no more than a quarter of the memory has megabytes: each has a thread and up to 12 MB."
  )

  let srtDefaultStream = Setting(
    "srt-default-stream", at: "srt.defaultStream", SettingText("name", StreamName.init(parsing:)),
    "Stream of SRT callers without a stream ID, such as cam; without it they are refused.")

  func names(_ given: SettingSources) throws(ConfigurationError) -> NameAllowance.Limits {
    let names = try given[maxNames]
    return NameAllowance.Limits(streams: try given[maxStreams], names: names, namesPerMinute: max(1, names / 4))
  }
}

extension SettingText<Int> {
  /// Bytes of media. Fewer are too few for any stream.
  fileprivate static var mediaMemory: Self {
    let least = 16
    return Self("size", values: .size) { text throws(ValueError) in
      let bytes = try ByteSizeText.parse(text)
      guard bytes >= least << 20 else {
        throw ValueError("media need at least \(least) MiB", advice: "use \(least)MiB or more")
      }
      return Int(clamping: bytes)
    }
  }
}
