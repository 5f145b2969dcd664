package import Base
package import FMP4

/// One timeline for all tracks of a publication, in nanoseconds. When the publisher's clock jumps, media continues
/// where it was, and the tracks keep their distance.
///
/// A jump is a large step of a track: back by more than half a second, or ahead of all tracks by more than ten seconds.
/// The first track that jumps breaks the timeline. The others follow to the same place at their own jumps. Tracks with
/// unrelated clocks are aligned by arrival.
package struct Timeline: Sendable {
  package struct Place: Sendable, Equatable {
    /// Nanoseconds on the timeline.
    package var time: Int64
    /// The timeline breaks before this sample.
    package var isBreak = false
    /// This track's clock was realigned. Values learned from its earlier times do not apply.
    package var isMoved = false
    /// The tracks' clocks differ by this many nanoseconds and were aligned by arrival.
    package var alignedBy: Int64?
  }

  private struct Track: Sendable {
    let id: TrackID
    let kind: MediaKind
    /// Timeline time minus wire time.
    var shift: Int64
    var last: Int64
    /// Expected time of the next sample.
    var end: Int64
    /// Arrival time of the last sample.
    var arrival: MonotonicTime
  }

  private static let backLimit: Int64 = 500_000_000
  private static let aheadLimit: Int64 = 10_000_000_000
  /// Tracks that begin further apart than this, by their times and by arrival, have different clocks.
  private static let skewLimit: Int64 = 5_000_000_000
  /// How far the other track may be ahead at a break.
  private static let overlap: Int64 = 80_000_000
  /// Limits of the assumed distance to the next sample.
  private static let shortestStep: Int64 = 1_000_000
  private static let longestStep: Int64 = 1_000_000_000
  /// Assumed distance to a track's second sample if none is stated.
  private static let usualStep: Int64 = 40_000_000

  /// Few: the caller limits their number.
  private var tracks: [Track] = []

  package init() {}

  /// The time of the newest sample, and the timeline's distance from its track's clock. Nil before the first sample.
  package var newest: (time: Int64, shift: Int64)? {
    tracks.max { $0.last < $1.last }.map { ($0.last, $0.shift) }
  }

  /// Whether no track before this one has come for so long, in nanoseconds: the videos are before each other, and before audio.
  package func leads(_ id: TrackID, _ kind: MediaKind, at time: Int64, after patience: Int64) -> Bool {
    !tracks.contains { other in
      other.kind == .video && (kind == .audio || other.id < id) && time &- other.last <= patience
    }
  }

  /// Places a sample. In nanoseconds, `wire` is its decode time by the publisher's clock, `length` its duration if the
  /// codec states it. `now` is the arrival time. Nil: the sample is dropped. It is before earlier ones, or within a pause that
  /// another track has jumped over.
  package mutating func place(_ id: TrackID, _ kind: MediaKind, wire: Int64, length: Int64?, now: MonotonicTime)
    -> Place?
  {
    guard let index = tracks.firstIndex(where: { $0.id == id }) else {
      return begin(id, kind, wire, length, now)
    }
    let track = tracks[index]
    let time = wire &+ track.shift
    let step = time &- track.last
    let head = tracks.reduce(track.last) { max($0, $1.last) }
    let goesOn = step >= -Self.backLimit && time &- head <= Self.aheadLimit
    if goesOn, !follows(track, wire) {
      record(index, time, shift: track.shift, length, now)
      return Place(time: time)
    }
    for other in tracks where other.shift != track.shift {
      // That track has jumped before; this may be the same jump.
      let time = wire &+ other.shift
      if time &- track.last >= -Self.backLimit, (time &- other.last).magnitude <= UInt64(Self.aheadLimit) {
        record(index, time, shift: other.shift, length, now)
        return Place(time: time, isMoved: true)
      }
    }
    // The other track has jumped over this time.
    if goesOn { return nil }
    if kind == .audio, step < 0, step > -Self.aheadLimit, tracks.contains(where: { $0.kind == .video }) {
      // Only audio steps back. Either the video follows, or audio catches up with itself.
      return nil
    }
    // Continues at this track's expected time. It moves after the others only if one is ahead by more than a frame or
    // two.
    let furthest = tracks.reduce(track.end) { max($0, $1.end) }
    let end = furthest &- track.end > Self.overlap ? furthest : track.end
    record(index, end, shift: end &- wire, length, now)
    return Place(time: end, isBreak: true, isMoved: true)
  }

  /// Whether a large step of a track belongs to the jump of another track. A pause of about ten seconds is above the limit in one
  /// track and below it in another.
  private func follows(_ track: Track, _ wire: Int64) -> Bool {
    let step = wire &+ track.shift &- track.end
    guard step > Self.skewLimit else { return false }
    return tracks.contains {
      $0.shift != track.shift && (wire &+ $0.shift &- track.end).magnitude < step.magnitude
    }
  }

  /// Places the first sample of a track.
  private mutating func begin(
    _ id: TrackID, _ kind: MediaKind, _ wire: Int64, _ length: Int64?, _ now: MonotonicTime
  ) -> Place {
    /// Whether the track's clock may be the clock of `other`.
    func isNear(_ other: Track) -> Bool {
      let time = wire &+ other.shift
      let expected = other.last &+ (now &- other.arrival)
      return (time &- other.last).magnitude <= UInt64(Self.skewLimit)
        || (time &- expected).magnitude <= UInt64(Self.skewLimit)
    }
    let newest = tracks.max { $0.arrival < $1.arrival }
    let near = tracks.first(where: isNear)
    let shift = near?.shift ?? newest.map { $0.last &- wire } ?? 0
    tracks.append(Track(id: id, kind: kind, shift: shift, last: wire &+ shift, end: 0, arrival: now))
    record(tracks.count - 1, wire &+ shift, shift: shift, length ?? Self.usualStep, now)
    guard near == nil, let newest else { return Place(time: wire &+ shift) }
    return Place(time: newest.last, isMoved: true, alignedBy: wire &+ newest.shift &- newest.last)
  }

  private mutating func record(_ index: Int, _ time: Int64, shift: Int64, _ length: Int64?, _ now: MonotonicTime) {
    let step = length ?? min(max(time &- tracks[index].last, Self.shortestStep), Self.longestStep)
    tracks[index].shift = shift
    tracks[index].last = time
    tracks[index].end = time &+ step
    tracks[index].arrival = now
  }
}
