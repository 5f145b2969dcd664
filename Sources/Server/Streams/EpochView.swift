internal import Basics
internal import FMP4

/// An epoch at one moment, as renderers and followers see it: playlists and manifests are functions of it.
struct EpochView: Sendable {
  /// The epoch's name: one path segment.
  let id: String
  private(set) var window: LiveWindow
  /// Wall-clock time of media time 0, in nanoseconds since 1970 (DASH availabilityStartTime).
  let availabilityStart: Int64
  /// What stands before the rendition in addresses of media, seen from the multivariant playlist and the manifest.
  let prefix: String
  /// The picture in other sizes, and the audio in another codec.
  let rungs: [TranscodedRendition]
  /// Rises with each change of the window or a rung's.
  let version: Int
  /// Periods before the last outage or restart.
  let keptPeriods: [KeptPeriod]
  /// For how long the stream waits for a publisher that was lost.
  let patience: MediaTime
  /// Where players find this server; nil where nobody said.
  let publicURL: PublicURL?

  /// `prefix` is the epoch's name where there is no other.
  init(
    id: String, window: LiveWindow, availabilityStart: Int64, prefix: String? = nil, rungs: [TranscodedRendition] = [],
    version: Int? = nil, keptPeriods: [KeptPeriod] = [], patience: MediaTime = .zero, publicURL: PublicURL? = nil
  ) {
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

  /// The rungs that players can choose from, the best first.
  var playableRungs: [TranscodedRendition] { rungs.filter { $0.isPlayable && $0.mediaKind == .video } }

  /// The audio that players can choose instead of the source's.
  var playableAudio: [TranscodedRendition] { rungs.filter { $0.isPlayable && $0.mediaKind == .audio } }

  /// The window of a rendition; nil for a rung that there is not.
  func window(of rendition: Rendition) -> LiveWindow? {
    rendition.isRung ? rungs.first { $0.rendition == rendition }?.window : window
  }

  /// The same, at its end.
  var ended: EpochView {
    var view = self
    view.window.end()
    return view
  }
}
