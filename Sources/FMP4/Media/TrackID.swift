/// Number of a track within its stream; the first is 1. It is also the `track_ID` in boxes (ISO/IEC 14496-12 §8.3.2),
/// so it is never 0.
public struct TrackID: Hashable, Sendable, Comparable {
  /// The `track_ID`.
  public let rawValue: UInt32

  /// The track with this `track_ID`, which is not 0.
  public init(_ rawValue: UInt32) {
    self.rawValue = rawValue
  }

  /// The video track of a stream with one video.
  public static let video = TrackID(1)
  /// The audio track of a stream with one audio.
  public static let audio = TrackID(2)

  /// The n-th track of a kind, from 1: odd numbers are video, even ones audio.
  public init(_ kind: MediaKind, _ number: Int) {
    let place = UInt32(clamping: max(number, 1) - 1)
    rawValue = min(place, UInt32.max / 2 - 1) * 2 + (kind == .video ? 1 : 2)
  }

  /// By number.
  public static func < (a: TrackID, b: TrackID) -> Bool { a.rawValue < b.rawValue }
}
