internal import Streams

/// Why media is missing in a recording, in words for its log and its gaps.
enum GapReason {
  /// In seconds. A change of parameters may take this long and is no gap.
  static let shortestGap = 0.1

  static let noTrack = "the stream has none of the chosen tracks"
  /// Groups of pictures are left out.
  static let tooSlow = "the disk was too slow"
  static let publisherAway = "nothing came from the publisher"
  private static let jump = "the publisher's timestamps jumped"
  private static let change = "tracks came, went or changed"

  static func of(_ cause: TimelineBreak) -> String {
    switch cause {
    case .publisher: publisherAway
    case .timestamps, .clock: jump
    case .tracks: change
    }
  }

  /// It is the publisher that the media did not come from, and no disk that it is missing on.
  static func isPublishers(_ reason: String) -> Bool {
    [publisherAway, jump, change, RecordingWait.reason].contains(reason)
  }

  /// The reason with the frames that came meanwhile: where there are any, it is not true that nothing came.
  static func text(_ reason: String, _ lost: LostFrames) -> String {
    guard isPublishers(reason), lost != LostFrames() else { return reason }
    let known = reason == publisherAway ? "the publisher was away" : reason
    return "\(known); \(lost) came and could not be used"
  }
}
