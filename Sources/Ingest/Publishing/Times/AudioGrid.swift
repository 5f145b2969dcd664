internal import FMP4

/// Puts audio on its own sample grid: each frame begins where the last one ended, whatever the wire time is. If the
/// publisher's clock and its samples stay apart, one correction is made: a gap or dropped frames. Frames are never
/// stretched.
package struct AudioGrid: Sendable {
  package enum Place: Sendable, Equatable {
    /// Ticks of the grid's timescale.
    case at(Int64)
    case drop
  }

  /// A correction. Positive: a gap. Negative: dropped audio.
  package struct Correction: Sendable, Equatable {
    package var milliseconds: Int64
    /// Number of corrections so far, with this one.
    package var count: Int
    /// A gap where frames are missing: their times stepped ahead by it.
    package var fillsHole = false
  }

  /// A deviation of this many milliseconds is corrected at once.
  private static let jump: Int64 = 500
  /// A smaller deviation, of a frame or more, is corrected after this many milliseconds. One of exactly a frame that is there
  /// from the start is how the publisher stamps, and stays: GStreamer gives its first two frames the same time.
  private static let patience: Int64 = 1000
  /// Wire times may be rounded to ticks of this timescale, as RTMP's are. So the distance that a lost frame leaves may differ
  /// from a frame's length by one tick.
  private static let wire: Int64 = 1000

  /// Ticks per second.
  package let timescale: UInt32
  /// Time of the next frame, in ticks.
  private var next: Int64?
  /// A lasting deviation: its side, its least value, its duration in ticks of media, and whether it began with missing frames.
  private var deviation: (isLate: Bool, least: Int64, lasted: Int64, isHole: Bool)?
  /// How far the last frame was from its place, in ticks.
  private var lastError: Int64 = 0
  /// A frame has come within a frame's length of its place.
  private var hasAgreed = false
  private var isDropping = false
  private var isRestarting = false
  private var corrections = 0
  /// The correction that the last call began.
  package private(set) var correction: Correction?

  package init(timescale: UInt32) {
    self.timescale = max(timescale, 1)
  }

  /// Handles a jump of the timeline. The next frame is placed at its own time, but never on earlier audio.
  package mutating func restart() {
    isRestarting = next != nil
    deviation = nil
    isDropping = false
    lastError = 0
  }

  /// Places the next frame. `time` is its wire time in nanoseconds, `duration` its length in ticks.
  package mutating func place(_ time: Int64, duration: UInt32) -> Place {
    correction = nil
    let wire = MediaTime(nanoseconds: time).rescaled(to: timescale)
    let length = Int64(duration)
    guard let expected = next else {
      next = wire &+ length
      return .at(wire)
    }
    let error = wire &- expected
    if isRestarting {
      isRestarting = false
      if error > 0 { return advance(to: wire, length) }
      isDropping = error < 0
    }
    if isDropping {
      if error < -(length / 2) { return .drop }
      isDropping = false
      return advance(to: expected, length)
    }
    guard let amount = correctionDue(error, length) else { return advance(to: expected, length) }
    corrections += 1
    correction = Correction(
      milliseconds: MediaTime(ticks: amount, timescale: timescale).rescaled(to: 1000), count: corrections,
      fillsHole: deviation?.isHole ?? false)
    deviation = nil
    lastError = error &- amount
    if amount > 0 { return advance(to: expected &+ amount, length) }
    isDropping = true
    return .drop
  }

  private mutating func advance(to time: Int64, _ length: Int64) -> Place {
    next = time &+ length
    return .at(time)
  }

  /// Ticks by which to move the grid now. Nil if no correction is due.
  private mutating func correctionDue(_ error: Int64, _ length: Int64) -> Int64? {
    let (distance, rounding) = (Int64(clamping: error.magnitude), Int64(timescale) / Self.wire &+ 1)
    let (near, far) = (max(length / 2, length &- rounding), length &+ rounding)
    let isLate = error > 0
    let isHole = isLate && error &- lastError >= near
    lastError = error
    if error.magnitude >= UInt64(Self.jump &* Int64(timescale) / 1000) {
      deviation = (isLate, error, 0, isHole)
      return error
    }
    guard distance > far || distance >= near && hasAgreed else {
      deviation = nil
      if distance < near { hasAgreed = true }
      return nil
    }
    if let before = deviation, before.isLate == isLate {
      deviation?.least = isLate ? min(before.least, error) : max(before.least, error)
      deviation?.lasted = before.lasted &+ length
    } else {
      deviation = (isLate, error, 0, isHole)
    }
    guard let now = deviation, now.lasted > Self.patience &* Int64(timescale) / 1000 else { return nil }
    guard length > 0 else { return now.least }
    let whole = (now.least &+ (isLate ? length : -length) / 2) / length &* length
    return whole != 0 && (whole &- now.least).magnitude <= UInt64(rounding) ? whole : now.least
  }
}
