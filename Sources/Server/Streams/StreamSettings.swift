internal import Basics
internal import FMP4
internal import Ingest

/// Settings that are common to all streams of a server.
struct StreamSettings: Sendable {
  var partTarget = MediaTime(milliseconds: 200)
  var segmentTarget = MediaTime(milliseconds: 2000)
  var targetDuration = TargetDuration.automatic
  /// The length of the media in memory.
  var window = MediaTime(milliseconds: 60_000)
  /// How far viewers can go back on disk; nil for no further than the window.
  var rewind: MediaTime?
  /// How long a stream waits for a publisher whose connection was lost.
  var reconnectWindow = MediaTime(milliseconds: 30_000)

  /// Which publishers it takes.
  var publishers = PublisherRule()
  /// Shown to viewers and programs.
  var title: String?
  var description: String?

  /// Limits for publishers, per minute.
  var bounds = PublicationBounds.Limits()

  /// The public address of the server; nil when it is not configured.
  var publicURL: PublicURL?
  /// The Periods that manifests keep from before an outage or for the next process: at most `count` of the epoch's newest, and
  /// earlier kept ones. Implemented by `DASHManifest`, which this folder does not know.
  var periodsToKeep: @Sendable (_ epoch: EpochView, _ count: Int) -> [KeptPeriod] = { _, _ in [] }

  /// Turns the video of every publication, by its tracks' matrix.
  var rotation = Rotation.none

  var layout = HLSLayout.interleaved
  var partAddressing = PartAddressing.url
  /// The rungs of a stream's video; empty without a ladder. A ladder needs the separate layout.
  var ladder: [RungSpecification] = []
  /// The additional audio codec; nil for the source's audio only. It needs the separate layout.
  var audio: AudioSpecification?
  /// AAC is added to audio that most browsers cannot play, where `audio` is nil.
  var addsPlayableAudio = true
  /// The language of the audio that players begin with (ISO 639-2); nil for the publisher's first.
  var audioDefault: String?
  /// Languages of tracks of audio (ISO 639-2), by their numbers, instead of what the publisher states.
  var audioLanguages: [Int: String] = [:]
  /// Names of tracks of audio for viewers.
  var audioNames = AudioNames()

  /// Whether media that WebRTC does not carry is encoded anew for its viewers, and VP8 of its publishers.
  var encodesForWebRTC = WebRTCEncoding.auto

  /// Which closed captions playlists declare.
  var captions = CaptionDeclarations.Rule.found

  /// What is encoded because of WebRTC.
  enum WebRTCEncoding: String, Sendable, Hashable, CaseIterable {
    /// H.264 without B-frames and Opus, while somebody watches who cannot get the stream's own; H.264 in place of VP8.
    case auto
    /// Nothing.
    case off
  }

  /// How HLS delivers video and audio.
  enum HLSLayout: String, Sendable, Hashable, CaseIterable {
    /// In one segment: half as many requests.
    case interleaved
    /// In separate renditions, whose segments DASH uses as well.
    case separate
  }

  /// How playlists name parts.
  enum PartAddressing: String, Sendable, Hashable, CaseIterable {
    /// Each part has a URL.
    case url
    /// Byte ranges of the segment, so that a cache holds one object.
    case byterange
  }

  /// How EXT-X-TARGETDURATION is decided.
  enum TargetDuration: Sendable, Hashable {
    /// From the first GOP, at most ten seconds.
    case automatic
    case seconds(Int)
  }

  /// The most segments in a window: four times the number without breaks of the timeline, at least 16.
  var segmentLimit: Int {
    let usual = window.rescaled(to: 1000) / max(1, segmentTarget.rescaled(to: 1000))
    return max(16, 4 * Int(clamping: usual))
  }

  /// How long an ended epoch stays available.
  static let endedAvailability = MediaTime(milliseconds: 60_000)
  /// A publisher that sent something within this time keeps its name, except against the name's own key.
  static let holderGrace = MediaTime(milliseconds: 3000)
  /// At most one takeover within this time.
  static let takeoverInterval = MediaTime(milliseconds: 5000)
}
