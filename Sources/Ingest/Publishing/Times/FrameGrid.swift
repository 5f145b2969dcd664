package import FMP4

/// Puts the frames of a constant rate back on their grid. The wire has rounded their times, to milliseconds at worst.
///
/// Each output time is within a millisecond of the wire time, captured times within their rounding, relative to one constant.
/// A frame that does not fit the grid keeps its time. The grid is used again once enough frames fit. Decode times strictly rise.
/// Dropped frames are gaps of whole steps. Presentation times are put on the grid separately, because senders round them
/// separately.
package struct FrameGrid: Sendable {
  /// A frame's times, in ticks of the grid's timescale.
  package struct Place: Sendable, Equatable {
    package var decodeTime: Int64
    package var compositionOffset: Int32
    /// Ticks until the next frame, if the grid predicts it.
    package var duration: UInt32?
  }

  /// A row of frames on one grid: time of its frame 0, and the last frame.
  private struct Row: Sendable {
    var anchor: Int64
    var last: Int64
    /// Number of consecutive frames that fitted.
    var count: Int
  }

  /// Consecutive fitting frames after which the grid is used again.
  private static let fittingFrames = 16
  /// Equal steps in a row before a step is predicted again after an unequal one.
  private static let equalSteps = 8

  /// Ticks per second; a multiple of 1000.
  package let timescale: UInt32
  private var clock: FrameClock?
  private var row: Row?
  private var isOnGrid: Bool
  private var learner: RateLearner?
  private var lastDecode: Int64?
  private var step: (frames: Int64, count: Int, varied: Bool) = (1, 0, false)
  private var shortestStep = Int64.max
  /// How far rounding may have moved a time, in nanoseconds.
  private var rounding = Self.millisecond
  /// The same where the sender's times use all ticks of the wire.
  private let leastRounding: Int64
  /// A rate holds from the first frame on. Otherwise enough of them have to fit first.
  private let isTrusted: Bool
  /// The first time on the wire since the timeline's last jump, in nanoseconds.
  private var first: Int64?

  private static let millisecond: Int64 = 1_000_000

  /// - Parameters:
  ///   - rate: the publisher's statement. Nil: the rate is learned.
  ///   - wire: ticks per second of the protocol's times.
  ///   - isCaptured: times are those at which pictures were taken. A frame may be moved to the grid by no more than the rounding
  ///     of its time, once enough frames fit. Browsers count 90 kHz in whole milliseconds; a time between two of them shows that
  ///     a sender's times are finer.
  package init(rate: FrameRate?, wire: UInt32 = 1000, isCaptured: Bool = false) {
    timescale = FrameClock.timescale(for: rate, wire: wire)
    // Two ticks: both ends of a distance are rounded.
    leastRounding = isCaptured ? 2_000_000_000 / Int64(max(wire, 1000)) : Self.millisecond
    clock = rate.map { [timescale] in FrameClock(rate: $0, timescale: timescale) }
    isTrusted = !isCaptured
    isOnGrid = rate != nil && isTrusted
    learner = rate == nil || isCaptured ? RateLearner() : nil
  }

  /// The rate of the frames so far. Nil if they keep to none.
  package var rate: FrameRate? { isOnGrid ? clock?.rate : nil }

  /// Ticks between two frames, if the rate is known and that is a whole number.
  package var frameDuration: UInt32? { clock?.wholeStep }

  /// Begins a new row with the next frame, because the timeline has jumped.
  package mutating func restart() {
    (row, first) = (nil, nil)
    isOnGrid = clock != nil && isTrusted
    step = (1, 0, false)
    if learner != nil || !isTrusted { learner = RateLearner() }
  }

  /// Places the next frame in decoding order. `decode` and `composition` are wire times in nanoseconds.
  package mutating func place(decode: Int64, composition: Int64) -> Place {
    if rounding > leastRounding, (decode &- (first ?? decode)) % Self.millisecond != 0 { rounding = leastRounding }
    if first == nil { first = decode }
    let tolerance = FrameClock.ticks(rounding, timescale)
    let wire = MediaTime(nanoseconds: decode).rescaled(to: timescale)
    var presentation = MediaTime(nanoseconds: decode &+ composition).rescaled(to: timescale)
    var time = wire
    follow(wire, decode, tolerance: tolerance)
    var duration: UInt32?
    if isOnGrid, let clock, let row {
      time = row.anchor &+ clock.ticks(ofFrame: row.last)
      let shown = clock.frame(nearest: presentation &- row.anchor)
      let onGrid = row.anchor &+ clock.ticks(ofFrame: shown)
      if (onGrid &- presentation).magnitude <= UInt64(tolerance) { presentation = onGrid }
      // Never predicts more than the shortest step so far. A frame later than predicted gets a slightly early decode
      // time. A frame earlier than predicted would get a decode time after its presentation. libavformat would then
      // delay all later video against the audio.
      if step.frames <= shortestStep, !step.varied || step.count >= Self.equalSteps {
        let next = row.anchor &+ clock.ticks(ofFrame: row.last &+ step.frames)
        duration = UInt32(exactly: next &- time)
      }
    }
    if let lastDecode, time <= lastDecode { time = lastDecode &+ 1 }
    lastDecode = time
    return Place(
      decodeTime: time, compositionOffset: Int32(clamping: presentation &- time), duration: duration)
  }

  /// Decides whether the frame is on the grid, and at which place.
  private mutating func follow(_ wire: Int64, _ decode: Int64, tolerance: Int64) {
    if let rate = learner?.learn(decode, rounding: rounding) {
      learner = nil
      if rate != clock?.rate || !isOnGrid {
        if rate != clock?.rate { shortestStep = .max }
        clock = FrameClock(rate: rate, timescale: timescale)
        row = Row(anchor: wire, last: 0, count: 0)
        isOnGrid = true
        step = (1, 0, false)
        return
      }
    }
    guard let clock else { return }
    guard let row else {
      self.row = Row(anchor: wire, last: 0, count: 0)
      return
    }
    let frame = clock.frame(nearest: wire &- row.anchor)
    let error = (row.anchor &+ clock.ticks(ofFrame: frame) &- wire).magnitude
    guard error <= UInt64(tolerance), frame > row.last else {
      if isOnGrid {
        // The old row may continue after a single stray frame.
        self.row?.count = 0
        isOnGrid = false
        if learner == nil { learner = RateLearner() }
      } else {
        self.row = Row(anchor: wire, last: 0, count: 0)
      }
      return
    }
    note(step: frame &- row.last)
    self.row?.last = frame
    if !isOnGrid {
      self.row?.count += 1
      isOnGrid = row.count + 1 >= Self.fittingFrames
    }
  }

  private mutating func note(step frames: Int64) {
    shortestStep = min(shortestStep, frames)
    if frames == step.frames {
      step.count += 1
    } else {
      step = (frames, 1, step.varied || step.count > 0)
    }
  }
}
