internal import FMP4
internal import Storage
internal import Transcode

/// The rungs of an epoch.
extension Epoch {
  /// The window of a rendition: the source's, or that of a rung. Nil for an unknown rung.
  func window(of rendition: Rendition) -> LiveWindow? {
    rendition.isRung ? rungs.first { $0.rendition == rendition }?.window : window
  }

  /// The rungs that players can choose, beside the source's video.
  var playableRungs: [TranscodedRendition] { rungs.filter { $0.isPlayable && $0.mediaKind == .video } }

  /// Rises with each change that a playlist of any rendition can show.
  var version: Int { rungs.reduce(window.version) { $0 + $1.window.version } }

  /// Playlists wait for rungs for at most this many segments of the source.
  private static let patience = 3

  /// Whether the expected rungs are ready, so that playlists can list them. `areExpected` holds their names.
  func hasRungs(_ areExpected: [String], withSegments: Bool) -> Bool {
    let areHere = rungs.allSatisfy { rung in
      !areExpected.contains(rung.name) || (withSegments ? rung.window.listsMedia : rung.isPlayable)
    }
    if areHere || window.isEnded { return true }
    let outages = window.segments.count(where: \.isOutage)
    return window.nextSequenceNumber - window.firstSequenceNumber - outages >= Self.patience
  }

  /// Takes an event of the video or audio transcoder.
  mutating func receive(_ event: TranscodeEvent, of kind: MediaKind = .video) throws(StorageError) {
    let own = rungs.indices.filter { rungs[$0].mediaKind == kind }
    switch event {
    case .track(let number, let track):
      if own.indices.contains(number) { rungs[own[number]].use(track) }
    case .frame(let number, let sample):
      if own.indices.contains(number) { try rungs[own[number]].take(sample) }
    case .lost(let time):
      for index in own { try rungs[index].lose(before: time) }
    case .ended:
      for index in own { rungs[index].end() }
    }
  }
}
