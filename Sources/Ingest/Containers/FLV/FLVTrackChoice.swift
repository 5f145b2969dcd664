/// The accepted track of one kind: the first in a supported codec, for the whole publication. Other tracks are left
/// out.
struct FLVTrackChoice {
  /// Nil until there is one.
  private(set) var taken: UInt8?

  /// Whether a track in a supported codec is the accepted one. The first becomes it.
  mutating func takes(_ track: UInt8) -> Bool {
    if let taken { return taken == track }
    taken = track
    return true
  }

  /// Whether data of that track belongs to the accepted one, or to a candidate.
  func follows(_ track: UInt8) -> Bool { taken == nil || taken == track }

  /// Releases the track because it proved unsupported. The next one is accepted.
  mutating func release() {
    taken = nil
  }
}

/// The parts of a message that were left out.
struct FLVLeftOut: Equatable {
  /// Name of an unsupported codec.
  var codec: String?
  /// It has data of an additional track.
  var hasFurtherTrack = false
}
