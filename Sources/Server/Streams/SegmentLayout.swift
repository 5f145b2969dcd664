internal import FMP4

/// How the bytes of a segment are laid out for a rendition.
enum SegmentLayout: Sendable {
  /// The first track of each kind in each fragment.
  case interleaved
  /// One track alone.
  case track(TrackDescription)

  /// Nil for the interleaved layout.
  var trackID: TrackID? {
    switch self {
    case .interleaved: nil
    case .track(let track): track.id
    }
  }
}
