/// Finds out whether a publisher's clock is off, by the least delays of some slices of time. A clock that is off changes them
/// steadily; a network does so in steps, and back. Real time is the measure: an uplink that is a little too narrow looks the same.
struct ClockDrift: Sendable {
  /// A clock that is off by a percent is known after 12 seconds. Those between this and what `ClockFollower` follows in small steps
  /// need two minutes.
  static let quick = ClockDrift(slice: 2_000_000_000, memory: 6, least: 0.005, patience: 15)
  static let slow = ClockDrift(slice: 30_000_000_000, memory: 4, least: 0.0005, patience: 4)
  /// A higher rate is no clock's: media is sent ahead, or falls behind.
  static let most = 0.25
  /// Errors in thousandths: from which on it is told, below which it no longer is, and the change that is told again.
  private static let worthTelling = 9.5
  private static let fine = 8.0
  private static let changed = 5.0
  /// The part of their growth, and the nanoseconds, by which steady delays may be off a line.
  private static let tolerance = (share: 0.125, least: 10_000_000.0)

  private let slice: Int64
  private let memory: Int
  private let least: Double
  private let patience: Int
  private var direct: LeastDelay
  /// Least delays of complete slices and their ends, oldest first.
  private var points: [(at: MonotonicTime, delay: MonotonicTime)] = []
  private var unsteady = 0
  /// Seconds of media that come in a second beyond one. Nil: the clock is right, or nothing is known.
  private(set) var rate: Double?
  /// The rate in thousandths, as it is told. Nil below ten.
  private(set) var error: Int?

  /// - Parameters:
  ///   - slice: in nanoseconds.
  ///   - least: the lowest rate that counts.
  ///   - patience: slices without a steady growth after which a rate is no longer known.
  private init(slice: Int64, memory: Int, least: Double, patience: Int) {
    (self.slice, self.memory, self.least, self.patience) = (slice, memory, least, patience)
    direct = LeastDelay(slice: slice)
  }

  /// Drops the measurements, because they no longer apply. What is known of the clock stays.
  mutating func forget() {
    points = []
    direct = LeastDelay(slice: slice)
  }

  /// Takes a sample's place on the timeline, in nanoseconds, and its arrival. Returns the least delay of the slice that it
  /// completes, if the clock is off and the delays grow or fall steadily.
  mutating func saw(_ time: Int64, now: MonotonicTime) -> MonotonicTime? {
    guard let delay = direct.saw(time, now: now) else { return nil }
    points.append((now, delay))
    if points.count > memory { points.removeFirst() }
    guard points.count == memory, let first = points.first, now > first.at else { return nil }
    let growth = Double(delay &- first.delay) / Double(now &- first.at)
    defer { tell() }
    if abs(growth) < least {
      (rate, unsteady) = (nil, 0)
      return nil
    }
    guard abs(growth) <= Self.most, isSteady(growth, from: first) else {
      unsteady += 1
      if unsteady >= patience { rate = nil }
      return nil
    }
    (rate, unsteady) = (-growth, 0)
    return delay
  }

  private func isSteady(_ growth: Double, from first: (at: MonotonicTime, delay: MonotonicTime)) -> Bool {
    let whole = abs(growth) * Double((points.last?.at ?? first.at) &- first.at)
    let most = max(whole * Self.tolerance.share, Self.tolerance.least)
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
