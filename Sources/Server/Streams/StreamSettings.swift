internal import Basics
internal import FMP4
internal import Ingest

/// What every stream of a server has in common.
struct StreamSettings: Sendable {
  var partTarget = MediaTime(milliseconds: 200)
  var segmentTarget = MediaTime(milliseconds: 2000)
  var targetDuration = TargetDuration.automatic
  /// How much media a stream keeps in memory.
  var window = MediaTime(milliseconds: 60_000)
  /// How far viewers can go back on disk; nil for no further than the window.
  var rewind: MediaTime?
  /// How long a name waits for a publisher whose connection was lost.
  var reconnectWindow = MediaTime(milliseconds: 30_000)

  /// What publishers may do to a stream in a minute.
  var bounds = PublicationBounds.Limits()

  /// Where players find this server; nil where nobody said.
  var publicURL: PublicURL?
  /// What manifests are to list of an epoch's time before an outage, or in the next process: so many of its newest Periods
  /// at most, and older ones (`DASHManifest`, which this folder does not know).
  var periodsToKeep: @Sendable (_ epoch: EpochView, _ count: Int) -> [KeptPeriod] = { _, _ in [] }

  var layout = HLSLayout.interleaved
  var partAddressing = PartAddressing.url
  /// The rungs that are made of a stream's picture; none for no ladder. It wants the separate layout.
  var ladder: [RungSpecification] = []
  /// What a stream's audio is also made into; nil for the source's alone. It wants the separate layout.
  var audio: AudioSpecification?

  /// How HLS delivers picture and audio.
  enum HLSLayout: String, Sendable, Hashable, CaseIterable {
    /// In one segment: half the requests.
    case interleaved
    /// In renditions of their own, whose segments are DASH's as well.
    case separate
  }

  /// How playlists name parts.
  enum PartAddressing: String, Sendable, Hashable, CaseIterable {
    /// Each has a URL.
    case url
    /// As byte ranges of their segment, so that a cache holds one object.
    case byterange
  }

  /// How EXT-X-TARGETDURATION is found.
  enum TargetDuration: Sendable, Hashable {
    /// From the first group of pictures, at most ten seconds.
    case automatic
    case seconds(Int)
  }

  /// Segments in a window: four times as many as there are without breaks of the timeline.
  var segmentLimit: Int {
    let usual = window.rescaled(to: 1000) / max(1, segmentTarget.rescaled(to: 1000))
    return max(16, 4 * Int(clamping: usual))
  }

  /// An ended epoch stays available this long.
  static let endedAvailability = MediaTime(milliseconds: 60_000)
  /// A publisher keeps its name while it sent something within this time, but against the name's own key.
  static let holderGrace = MediaTime(milliseconds: 3000)
  /// At most one switch of publisher within this time.
  static let takeoverInterval = MediaTime(milliseconds: 5000)
}
