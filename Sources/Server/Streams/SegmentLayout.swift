package import FMP4

/// The layout of a segment's bytes in a rendition.
package enum SegmentLayout: Sendable {
  /// The first track of each kind in each fragment.
  case interleaved
  /// A single track.
  case track(TrackDescription)

  /// Nil for the interleaved layout.
  package var trackID: TrackID? {
    switch self {
    case .interleaved: nil
    case .track(let track): track.id
    }
  }
}
