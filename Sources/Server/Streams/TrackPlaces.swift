internal import FMP4

/// The places of the tracks of an epoch: a track keeps its ID, and so its rendition, over the publications. In a later
/// publication it is known by its ID and language, else by its language, else by its ID. A value; it begins with the
/// epoch's first publication.
struct TrackPlaces: Sendable {
  private struct Known: Sendable {
    let kind: MediaKind
    let place: TrackID
    /// The publisher's ID.
    var id: TrackID
    var language: String
    /// The current publication has it.
    var isTaken = true
  }

  /// The language of the first audio, if the first publication has it (ISO 639-2). Nil: that of its lowest ID.
  private let preferred: String?
  private var known: [Known] = []
  /// Places of the current publication's tracks that differ from their IDs.
  private var moved: [TrackID: TrackID] = [:]

  init(preferring language: String? = nil) { preferred = language }

  mutating func startPublication() {
    for index in known.indices { known[index].isTaken = false }
    moved = [:]
  }

  /// A track of the current publication is not at its ID.
  var isMoved: Bool { !moved.isEmpty }

  /// The place of a track of the current publication.
  func place(of id: TrackID) -> TrackID { moved[id] ?? id }

  /// The same tracks at their places.
  mutating func place(_ tracks: [TrackDescription]) -> [TrackDescription] {
    var waiting = tracks.sorted { $0.id < $1.id }
    waiting.removeAll { track in known.contains { $0.isTaken && $0.id == track.id && $0.kind == track.kind } }
    let rules: [(Known, TrackDescription) -> Bool] = [
      { $0.id == $1.id && $0.language == $1.language },
      { $0.language == $1.language && $1.language != "und" },
      { $0.id == $1.id },
    ]
    for rule in rules {
      waiting.removeAll { track in
        let free = known.firstIndex { !$0.isTaken && $0.kind == track.kind && rule($0, track) }
        return free.map { take($0, track) } != nil
      }
    }
    let (first, others) = (waiting.filter { $0.language == preferred }, waiting.filter { $0.language != preferred })
    for track in first + others { add(track) }
    let placed = tracks.map { track in
      var track = track
      let own = known.firstIndex { $0.isTaken && $0.id == track.id && $0.kind == track.kind }
      if let own {
        known[own].language = track.language
        track.id = known[own].place
      }
      return track
    }
    moved = [:]
    for (track, placed) in zip(tracks, placed) where track.id != placed.id { moved[track.id] = placed.id }
    return moved.isEmpty ? tracks : placed.sorted { $0.id < $1.id }
  }

  private mutating func take(_ index: Int, _ track: TrackDescription) {
    (known[index].id, known[index].isTaken) = (track.id, true)
  }

  /// A track that the epoch does not know gets the lowest number. After too many it continues one that is gone.
  private mutating func add(_ track: TrackDescription) {
    let places = known.map(\.place)
    if let number = (1...Rendition.mostTracks).first(where: { !places.contains(TrackID(track.kind, $0)) }) {
      let place = TrackID(track.kind, number)
      known.append(Known(kind: track.kind, place: place, id: track.id, language: track.language))
    } else if let free = known.firstIndex(where: { !$0.isTaken && $0.kind == track.kind }) {
      take(free, track)
    }
  }
}
