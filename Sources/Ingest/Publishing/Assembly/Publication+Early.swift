package import FMP4

extension Publication {
  /// A frame of video that cannot be decoded. Before the first key frame of its track nothing is missing by that.
  package func undecodable(_ track: TrackID) -> PublicationAction {
    let hasBegun = videos.index(of: track).map { videos[$0].description != nil } ?? false
    return hasBegun ? .lost(.video) : .inBand(.early(.video))
  }
}
