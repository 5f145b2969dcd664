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
}

/// What of a message is left out.
struct FLVLeftOut: Equatable {
  /// The name of a codec that weir does not take.
  var codec: String?
  /// It carries something of a further track.
  var hasFurtherTrack = false
}
