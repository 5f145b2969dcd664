internal import Base
/// Finds out whether a publisher's clock is off, by the least delays of some slices of time. A clock that is off changes them
/// steadily; a network does so in steps, and back. An uplink that is too narrow fills a queue, and that drains again: so delays
/// must grow for half a minute, at one rate, and fall below those before.
struct ClockDrift: Sendable {
  /// A clock that is fast by a percent is known after 12 seconds, and one that is slow after 26. Those between this and what
  /// `ClockFollower` follows in small steps need two minutes.
  static let quick = ClockDrift(slice: 2_000_000_000, memory: (fall: 6, growth: 13), least: 0.005, patience: 15)
  static let slow = ClockDrift(slice: 30_000_000_000, memory: (fall: 4, growth: 4), least: 0.0005, patience: 4)
  /// A higher rate is no clock's: media is sent ahead, or falls behind.
  static let most = 0.25
  /// Errors in thousandths: from which on it is told, below which it no longer is, and the change that is told again.
  private static let worthTelling = 9.5
  private static let fine = 8.0
  private static let changed = 5.0
  /// The part of their growth by which steady delays may be off a line, and its bounds in nanoseconds.
  private static let tolerance = (share: 0.125, least: 10_000_000.0, most: 100_000_000.0)
  /// Nanoseconds by which delays that fall must be below those before.
  private static let fall: Int64 = 30_000_000

  private typealias Point = (at: MonotonicTime, delay: MonotonicTime)

  private let slice: Int64
  private let memory: (fall: Int, growth: Int)
  private let least: Double
  private let patience: Int
  private var direct: LeastDelay
  /// Least delays of complete slices and their ends, oldest first.
  private var points: [Point] = []
  /// The least delay before those.
  private var lowest = MonotonicTime.max
  private var unsteady = 0
  /// Seconds of media that come in a second beyond one. Nil: the clock is right, or nothing is known.
  private(set) var rate: Double?
  /// The rate in thousandths, as it is told. Nil below ten.
  private(set) var error: Int?

  /// - Parameters:
  ///   - slice: in nanoseconds.
  ///   - memory: the slices that are compared, where delays fall, and where they grow and the clock is not known to be slow.
  ///   - least: the lowest rate that counts.
  ///   - patience: slices without a steady growth after which a rate is no longer known.
  private init(slice: Int64, memory: (fall: Int, growth: Int), least: Double, patience: Int) {
    (self.slice, self.memory, self.least, self.patience) = (slice, memory, least, patience)
    direct = LeastDelay(slice: slice)
  }

  /// Drops the measurements, because they no longer apply. What is known of the clock stays. `delay` is the least from now on.
  mutating func begin(from delay: MonotonicTime) {
    (points, lowest) = ([], delay)
    direct = LeastDelay(slice: slice)
  }

  /// Takes a sample's place on the timeline, in nanoseconds, and its arrival. Returns the least delay of the slice that it
  /// completes, if the clock is off and the delays grow or fall steadily.
  mutating func saw(_ time: Int64, now: MonotonicTime) -> MonotonicTime? {
    guard let delay = direct.saw(time, now: now) else { return nil }
    points.append((now, delay))
    if points.count > memory.growth { lowest = min(lowest, points.removeFirst().delay) }
    let recent = points.suffix(memory.fall)
    guard recent.count == memory.fall, let growth = Self.growth(of: recent) else { return nil }
    defer { tell() }
    if abs(growth) < least {
      (rate, unsteady) = (nil, 0)
      return nil
    }
    guard abs(growth) <= Self.most, let growth = growth < 0 ? fall(growth, of: recent) : rise(growth, of: recent) else {
      unsteady += 1
      if unsteady >= patience { rate = nil }
      return nil
    }
    (rate, unsteady) = (-growth, 0)
    return delay
  }

  /// The rate at which delays fall. Nil: not steadily, or only back to what they were.
  private func fall(_ growth: Double, of recent: ArraySlice<Point>) -> Double? {
    guard let newest = recent.last, Self.isSteady(growth, recent) else { return nil }
    let before = points.dropLast(memory.fall).reduce(lowest) { min($0, $1.delay) }
    return newest.delay <= before &- Self.fall ? growth : nil
  }

  /// The rate at which delays grow. Nil: not steadily, or not for long enough.
  private func rise(_ growth: Double, of recent: ArraySlice<Point>) -> Double? {
    if let rate, rate < 0 { return Self.isSteady(growth, recent) ? growth : nil }
    guard points.count == memory.growth, let growth = Self.growth(of: points[...]), growth >= least,
      Self.isSteady(growth, points[...])
    else { return nil }
    return growth
  }

  private static func growth(of points: ArraySlice<Point>) -> Double? {
    guard let first = points.first, let last = points.last, last.at > first.at else { return nil }
    return Double(last.delay &- first.delay) / Double(last.at &- first.at)
  }

  private static func isSteady(_ growth: Double, _ points: ArraySlice<Point>) -> Bool {
    guard let first = points.first, let last = points.last else { return false }
    let whole = abs(growth) * Double(last.at &- first.at)
    let most = min(max(whole * tolerance.share, tolerance.least), tolerance.most)
    return points.allSatisfy { point in
      abs(Double(point.delay &- first.delay) - growth * Double(point.at &- first.at)) <= most
    }
  }

  private mutating func tell() {
    let thousandths = (rate ?? 0) * 1000
    guard abs(thousandths) >= (error == nil ? Self.worthTelling : Self.fine) else {
      error = nil
      return
    }
    if let error, abs(Double(error) - thousandths) < Self.changed { return }
    error = Int(thousandths.rounded())
  }
}
