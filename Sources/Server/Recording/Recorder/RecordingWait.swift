/// What a recording leaves out until a key frame comes: a file begins with one. Reads as a sentence.
enum RecordingWait: Sendable, Hashable, CustomStringConvertible {
  case everything
  /// The file goes on with the tracks that stayed as they were.
  case changedTracks

  /// The reason of the gap where everything is left out.
  static let reason = "no key frame came with which a file could begin"

  var description: String {
    switch self {
    case .everything: "nothing is recorded before the next key frame, since a file begins with one; \(Self.advice)"
    case .changedTracks:
      "tracks came, went or changed, and no key frame since: up to the next one the recording goes on without them; "
        + Self.advice
    }
  }

  private static let advice = "set the encoder's key frame interval to 2 s"
}
