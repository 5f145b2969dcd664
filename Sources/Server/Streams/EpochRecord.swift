internal import FMP4

/// What an epoch has told its players and must stay true when the next process resumes it: used addresses, and values that
/// never change. It contains no media; players have it already, or continue without it.
struct EpochRecord: Sendable, Hashable {
  /// The epoch's name.
  var epoch: String
  /// The wall-clock times of the start and of media time 0.
  var startedAt: WallTime
  var availabilityStart: WallTime
  /// EXT-X-TARGETDURATION, in seconds.
  var targetDuration: Int
  /// PART-TARGET; nil when the tracks were unknown.
  var partTarget: MediaTime?
  /// The longest key frame interval so far.
  var longestGroup: MediaTime?
  /// Playlists promise that every segment starts with a key frame (EXT-X-INDEPENDENT-SEGMENTS).
  var promisesIndependence: Bool
  /// The first unused media sequence number.
  var nextSequenceNumber: Int
  /// The first unused ordinal of a DASH Period.
  var nextPeriod: Int
  /// The newest version of the init segment.
  var initVersion: Int
  /// The number of breaks of the timeline.
  var breaks: Int
  /// Its last publisher had a key, or is a source of the server.
  var isHeld = false
  /// All media ends before this, in milliseconds of the epoch's timeline.
  var mediaEnd: Int64
  /// The end of the media at the time of writing, in milliseconds of the epoch's timeline.
  var knownEnd: Int64
  /// Wall-clock time minus media time in the newest segment.
  var clockOffset: WallTime
  /// The wall-clock start of one of the last listed segments; `zero` when none was listed. The next process lists the time
  /// from there on.
  var listedFrom: WallTime
  /// Periods from manifests, oldest first.
  var periods: [KeptPeriod] = []
  /// Init segments that playlists and manifests named last.
  var inits: [KeptInit] = []

  /// A copy with margins, for a process that may die at any time: a segment may begin, or the tracks may change, before the
  /// next record is written.
  func withMargin() -> EpochRecord {
    var record = self
    record.nextSequenceNumber += Self.margin
    record.nextPeriod += Self.margin
    record.initVersion += Self.margin
    record.breaks += Self.margin
    record.mediaEnd &+= Int64(targetDuration &* (Self.margin + 1) &+ 1) &* 1000
    return record
  }

  /// The record as read at wall-clock time `now`. No media is published before it is captured, so it
  /// ends at `now` at the latest, unless its clock is ahead. The bound matters: a player without support for discontinuities
  /// (ffmpeg, GStreamer) stalls for the length of a jump in media time.
  func read(at now: WallTime) -> EpochRecord {
    let reached = (now &- clockOffset) / 1_000_000 &+ 1
    guard reached > knownEnd else { return self }
    var record = self
    record.mediaEnd = min(mediaEnd, reached)
    return record
  }

  private static let margin = 1
}
