internal import FMP4

/// What an epoch has told its players and must stay true when it goes on in another process: addresses that are used
/// up, and figures that never change. The media themselves are not in it; players have them already, or go on without.
struct EpochRecord: Sendable, Hashable {
  /// The epoch's name.
  var epoch: String
  /// When its stream came up, and the wall-clock time of its media time 0, in nanoseconds since 1970.
  var startedAt: Int64
  var availabilityStart: Int64
  /// EXT-X-TARGETDURATION, in seconds.
  var targetDuration: Int
  /// PART-TARGET; nil where the tracks were not known yet.
  var partTarget: MediaTime?
  /// The longest distance of key frames so far.
  var longestGroup: MediaTime?
  /// Playlists promise that every segment starts with a key frame (EXT-X-INDEPENDENT-SEGMENTS).
  var promisesIndependence: Bool
  /// The first media sequence number that was given to nothing.
  var nextSequenceNumber: Int
  /// The same of DASH Periods.
  var nextPeriod: Int
  /// The newest version of the init segment.
  var initVersion: Int
  /// How often the timeline broke.
  var breaks: Int
  /// No media lies behind this, in milliseconds of the epoch's timeline.
  var mediaEnd: Int64
  /// Where the media end that were there when this was written, in the same.
  var knownEnd: Int64
  /// Wall-clock time less media time in the newest segment, in nanoseconds.
  var clockOffset: Int64
  /// Wall-clock time, in nanoseconds since 1970, at which one of the last segments starts that playlists list; 0 where they
  /// list none. The next process lists the time from there on.
  var listedFrom: Int64
  /// What manifests have told of the media, oldest first.
  var periods: [KeptPeriod] = []

  /// The same for a process that may die at any moment: another segment may begin and the tracks may change before
  /// somebody has written down that they did.
  func withMargin() -> EpochRecord {
    var record = self
    record.nextSequenceNumber += Self.margin
    record.nextPeriod += Self.margin
    record.initVersion += Self.margin
    record.breaks += Self.margin
    record.mediaEnd &+= Int64(targetDuration &* (Self.margin + 1) &+ 1) &* 1000
    return record
  }

  /// The same for a process that reads it at a wall-clock time, in nanoseconds since 1970: nothing was published before it
  /// was captured, so the media reach no further than the clock, unless they are ahead of it. A player that knows no
  /// discontinuities (ffmpeg, GStreamer) stands still for as long as media time leaps.
  func read(at now: Int64) -> EpochRecord {
    let reached = (now &- clockOffset) / 1_000_000 &+ 1
    guard reached > knownEnd else { return self }
    var record = self
    record.mediaEnd = min(mediaEnd, reached)
    return record
  }

  private static let margin = 1
}
