package import Base
package import FMP4
package import Transcode

/// Settings of a stream, made by `StreamOptions`; which streams share them: `StreamProfiles`.
package struct StreamSettings: Sendable {
  package var partTarget = MediaTime(milliseconds: 200)
  package var segmentTarget = MediaTime(milliseconds: 2000)
  package var targetDuration = TargetDuration.automatic
  /// The length of the media in memory.
  package var window = MediaTime(milliseconds: 60_000)
  /// How far viewers can go back on disk; nil for no further than the window.
  package var rewind: MediaTime?
  /// How long a stream waits for a publisher whose connection was lost.
  package var reconnectWindow = MediaTime(milliseconds: 30_000)
  /// What happens when its publisher stops.
  package var end = EndRule.publisher
  /// What takes the place of a publisher that is away; nil for nothing.
  package var fallback: Fallback?
  /// After how long without video of its publisher.
  package var fallbackAfter = MediaTime(milliseconds: 5000)
  /// The settings are those of this name alone, not of a pattern or of all streams.
  package var isOfOneName = false

  /// Which publishers it takes.
  package var publishers = PublisherRule()
  /// Shown to viewers and programs.
  package var title: String?
  package var description: String?

  /// Limits for publishers, per minute.
  package var bounds = PublicationBounds.Limits()

  /// The public address of the server; nil when it is not configured.
  package var publicURL: PublicURL?
  /// The Periods that manifests keep from before an outage or for the next process: at most `count` of the epoch's newest, and
  /// earlier kept ones. Implemented by `DASHManifest`, which this folder does not know.
  package var periodsToKeep: @Sendable (_ epoch: EpochView, _ count: Int) -> [KeptPeriod] = { _, _ in [] }

  /// Turns the video of every publication, by its tracks' matrix.
  package var rotation = Rotation.none

  package var layout = HLSLayout.interleaved
  package var partAddressing = PartAddressing.url
  /// The rungs of a stream's video; empty without a ladder. A ladder needs the separate layout.
  package var ladder: [RungSpecification] = []
  /// The additional audio codec; nil for the source's audio only. It needs the separate layout.
  package var audio: AudioSpecification?
  /// AAC is added to audio that most browsers cannot play, where `audio` is nil.
  package var addsPlayableAudio = true
  /// The language of the audio that players begin with (ISO 639-2); nil for the publisher's first.
  package var audioDefault: String?
  /// Languages of tracks of audio (ISO 639-2), by their numbers, instead of what the publisher states.
  package var audioLanguages: [Int: String] = [:]
  /// Names of tracks of audio for viewers.
  package var audioNames = AudioNames()

  /// Whether media that WebRTC does not carry is encoded anew for its viewers, and VP8 of its publishers.
  package var encodesForWebRTC = WebRTCEncoding.auto

  /// Which closed captions playlists declare.
  package var captions = CaptionDeclarations.Rule.found

  package init() {}

  /// What happens to a stream when its publisher stops, or was lost and has not returned in `reconnectWindow`.
  package enum EndRule: Sendable, Hashable {
    /// It ends.
    case publisher
    /// It waits this long for the next publisher, counted from when the last one left.
    case linger(MediaTime)
    /// It waits for the next publisher, however long.
    case never

    /// The rule that holds: a name that anybody may take ends with its publisher.
    ///
    /// - Parameter isHeld: its last publisher had a key, or is a source of this server.
    func holding(isOfOneName: Bool, isHeld: Bool) -> EndRule { isHeld || isOfOneName ? self : .publisher }
  }

  /// How long the stream may be without a publisher; nil without limit.
  func patience(isHeld: Bool = true) -> MediaTime? {
    switch end.holding(isOfOneName: isOfOneName, isHeld: isHeld) {
    case .publisher: reconnectWindow
    case .linger(let time): max(time, reconnectWindow)
    case .never: nil
    }
  }

  /// What is encoded because of WebRTC.
  package enum WebRTCEncoding: String, Sendable, Hashable, CaseIterable {
    /// H.264 without B-frames and Opus, while somebody watches who cannot get the stream's own; H.264 in place of VP8.
    case auto
    /// Nothing.
    case off
  }

  /// How HLS delivers video and audio.
  package enum HLSLayout: String, Sendable, Hashable, CaseIterable {
    /// In one segment: half as many requests.
    case interleaved
    /// In separate renditions, whose segments DASH uses as well.
    case separate
  }

  /// How playlists name parts.
  package enum PartAddressing: String, Sendable, Hashable, CaseIterable {
    /// Each part has a URL.
    case url
    /// Byte ranges of the segment, so that a cache holds one object.
    case byterange
  }

  /// How EXT-X-TARGETDURATION is decided.
  package enum TargetDuration: Sendable, Hashable {
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
  package static let endedAvailability = MediaTime(milliseconds: 60_000)
  /// A publisher that sent something within this time keeps its name, except against the name's own key.
  static let holderGrace = MediaTime(milliseconds: 3000)
  /// At most one takeover within this time.
  static let takeoverInterval = MediaTime(milliseconds: 5000)
}
