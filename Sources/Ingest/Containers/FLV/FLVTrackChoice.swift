/// Which of a publication's tracks of one kind is taken: the first in a codec that weir takes, for as long as the
/// publication lasts. The others are left out.
struct FLVTrackChoice {
  /// Nil until there is one.
  private(set) var taken: UInt8?

  /// Whether a track in a codec that weir takes is the one.
  mutating func takes(_ track: UInt8) -> Bool {
    if let taken { return taken == track }
    taken = track
    return true
  }

  /// Whether something of that track belongs to the one, or to what may become it.
  func follows(_ track: UInt8) -> Bool { taken == nil || taken == track }

  /// The track turned out to be none that can be taken: the next one is.
  mutating func release() {
    taken = nil
  }
}

/// What of a message is left out.
struct FLVLeftOut: Equatable {
  /// The name of a codec that weir does not take.
  var codec: String?
  /// It carries something of a further track.
  var hasFurtherTrack = false
}
