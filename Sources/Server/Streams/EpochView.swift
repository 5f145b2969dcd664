package import Base
package import FMP4

/// An epoch at one moment, for renderers and followers: playlists and manifests are functions of it.
package struct EpochView: Sendable {
  /// The epoch's name: one path segment.
  package let id: String
  package private(set) var window: LiveWindow
  /// Wall-clock time of media time 0 (DASH availabilityStartTime).
  package let availabilityStart: WallTime
  /// The path before the rendition in addresses of media, relative to the multivariant playlist and the manifest.
  package let prefix: String
  /// The rungs of the video, and the audio in another codec.
  let rungs: [TranscodedRendition]
  /// Rises with each change of the window or of a rung's window.
  package let version: Int
  /// Periods before the last outage or restart.
  package let keptPeriods: [KeptPeriod]
  /// Init segments that those, and playlists of that time, name.
  package var keptInits: [KeptInit] = []
  /// How long the stream waits for a lost publisher.
  package let patience: MediaTime
  /// The public address of the server; nil when it is not configured.
  package let publicURL: PublicURL?
  /// The layout of HLS.
  package let layout: StreamSettings.HLSLayout
  /// How playlists present it.
  package var presentation = Presentation()

  /// The settings that playlists follow. They stay those of the epoch when the stream's settings change.
  package struct Presentation: Sendable {
    /// The configured layout.
    package var layout = StreamSettings.HLSLayout.interleaved
    package var addressing = StreamSettings.PartAddressing.url
    /// How far viewers can go back on disk.
    package var rewind: MediaTime?
    package var audioNames = AudioNames()
  }

  /// `prefix` defaults to the name of the epoch.
  package init(
    id: String, window: LiveWindow, availabilityStart: WallTime, prefix: String? = nil,
    rungs: [TranscodedRendition] = [],
    version: Int? = nil, keptPeriods: [KeptPeriod] = [], patience: MediaTime = .zero, publicURL: PublicURL? = nil,
    layout: StreamSettings.HLSLayout = .interleaved
  ) {
    self.layout = layout
    self.patience = patience
    self.keptPeriods = keptPeriods
    self.id = id
    self.rungs = rungs
    self.version = version ?? window.version
    self.prefix = prefix ?? "\(id)/"
    self.publicURL = publicURL
    self.window = window
    self.availabilityStart = availabilityStart
  }

  /// The renditions of the source's present tracks, each alone.
  package var trackRenditions: [Rendition] { window.currentInit?.tracks.map { Rendition($0) } ?? [] }

  /// The rungs that players can choose, best first.
  package var playableRungs: [TranscodedRendition] { rungs.filter { $0.isPlayable && $0.mediaKind == .video } }

  /// The audio that players can choose instead of the source's.
  package var playableAudio: [TranscodedRendition] { rungs.filter { $0.isPlayable && $0.mediaKind == .audio } }

  /// The window of a rendition; nil for an unknown rung.
  package func window(of rendition: Rendition) -> LiveWindow? {
    rendition.isRung ? rungs.first { $0.rendition == rendition }?.window : window
  }

  /// A copy that is marked as ended.
  package var ended: EpochView {
    var view = self
    view.window.end()
    return view
  }
}
