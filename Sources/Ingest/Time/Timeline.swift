internal import FMP4

/// One timeline for all tracks of a publication, in milliseconds: whatever the publisher's clock jumps to, media
/// goes on where it was, and the tracks keep their distance from each other.
///
/// A jump is a step of a track back by more than half a second, or ahead of the whole publication by more than ten.
/// The first track that jumps breaks the timeline; the other follows to the same place when its own jump comes.
/// Tracks whose clocks have nothing to do with each other are aligned by arrival.
struct Timeline: Sendable {
  struct Place: Sendable, Equatable {
    /// Milliseconds on the timeline.
    var time: Int64
    /// The timeline breaks before this sample.
    var isBreak = false
    /// This track's clock was laid anew: what was learned from its times before does not hold.
    var isMoved = false
    /// The tracks' clocks differ by this many milliseconds and were aligned by arrival.
    var alignedBy: Int64?
  }

  private struct Track: Sendable {
    /// Timeline minus wire.
    var shift: Int64
    var last: Int64
    /// Where the next sample is expected.
    var end: Int64
    /// When `last` came, in nanoseconds.
    var arrival: Int64
  }

  private static let backLimit: Int64 = 500
  private static let aheadLimit: Int64 = 10_000
  /// Tracks that begin further apart than this, by their times and by the clock, have different clocks.
  private static let skewLimit: Int64 = 5_000
  /// How far the other track may be ahead at a break, in milliseconds.
  private static let overlap: Int64 = 80
  /// The longest distance to a next sample that is taken for granted.
  private static let longestStep: Int64 = 1_000

  private var video: Track?
  private var audio: Track?

  /// Places a sample. `wire` is its unwrapped decode time in milliseconds, `length` its duration where the codec
  /// states it, `now` the time of arrival in nanoseconds. Nil: the sample lies behind what was there before and is
  /// dropped.
  mutating func place(_ kind: MediaKind, wire: Int64, length: Int64?, now: Int64) -> Place? {
    let other = kind == .video ? audio : video
    guard let track = kind == .video ? video : audio else {
      return begin(kind, wire, length, now, other: other)
    }
    let time = wire &+ track.shift
    let head = max(track.last, other?.last ?? track.last)
    let step = time &- track.last
    if step >= -Self.backLimit, time &- head <= Self.aheadLimit {
      record(kind, time, shift: track.shift, length, now)
      return Place(time: time)
    }
    if let other, other.shift != track.shift {
      // The other track has jumped before: this is the same jump.
      let time = wire &+ other.shift
      if time &- track.last >= -Self.backLimit, (time &- other.last).magnitude <= UInt64(Self.aheadLimit) {
        record(kind, time, shift: other.shift, length, now)
        return Place(time: time, isMoved: true)
      }
    }
    if kind == .audio, other != nil, step < 0, step > -Self.aheadLimit {
      // Sound alone steps back: either the picture follows, or sound catches up with itself.
      return nil
    }
    // Where this track was to go on; behind the other track only where that is further ahead than a frame or two.
    var end = track.end
    if let other, other.end &- end > Self.overlap { end = other.end }
    record(kind, end, shift: end &- wire, length, now)
    return Place(time: end, isBreak: true, isMoved: true)
  }

  /// The first sample of a track.
  private mutating func begin(
    _ kind: MediaKind, _ wire: Int64, _ length: Int64?, _ now: Int64, other: Track?
  ) -> Place {
    guard let other else {
      record(kind, wire, shift: 0, length, now)
      return Place(time: wire)
    }
    let time = wire &+ other.shift
    let expected = other.last &+ (now &- other.arrival) / 1_000_000
    let difference = time &- other.last
    if difference.magnitude > UInt64(Self.skewLimit), (time &- expected).magnitude > UInt64(Self.skewLimit) {
      record(kind, other.last, shift: other.last &- wire, length, now)
      return Place(time: other.last, isMoved: true, alignedBy: difference)
    }
    record(kind, time, shift: other.shift, length, now)
    return Place(time: time)
  }

  private mutating func record(_ kind: MediaKind, _ time: Int64, shift: Int64, _ length: Int64?, _ now: Int64) {
    let before = kind == .video ? video : audio
    let step = length ?? before.map { min(max(time &- $0.last, 1), Self.longestStep) } ?? 40
    let track = Track(shift: shift, last: time, end: time &+ step, arrival: now)
    if kind == .video { video = track } else { audio = track }
  }
}
