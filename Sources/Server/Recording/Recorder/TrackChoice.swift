package import FMP4

/// Which tracks of a stream are recorded.
package enum TrackChoice: Sendable, Hashable {
  case all
  case kind(MediaKind)
  /// By their numbers in the stream.
  case numbers(Set<TrackID>)

  /// The chosen ones, in their order.
  func choose(from tracks: [TrackDescription]) -> [TrackDescription] {
    switch self {
    case .all: tracks
    case .kind(let kind): tracks.filter { $0.kind == kind }
    case .numbers(let numbers): tracks.filter { numbers.contains($0.id) }
    }
  }

  /// Whether the tracks have all that is chosen.
  package func isThere(in tracks: [TrackDescription]) -> Bool {
    switch self {
    case .all: true
    case .kind: !choose(from: tracks).isEmpty
    case .numbers(let numbers): choose(from: tracks).count == numbers.count
    }
  }
}
