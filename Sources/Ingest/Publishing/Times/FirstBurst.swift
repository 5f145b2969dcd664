package import Base
/// A publication that begins faster than real time: with the last seconds of a relay's stream, or with the first half second of
/// ffmpeg 8. Its media seem to be made when they come, and turn out to be older with each sample. So nobody should be told when
/// they were made before the burst is over.
package struct FirstBurst: Sendable {
  /// Nanoseconds by which media are older than they seemed, in a burst. Less is the beginning of any encoder.
  static let shortest: Int64 = 100_000_000
  /// Nanoseconds without older media that end it: a pause of the network is shorter.
  static let quiet: Int64 = 200_000_000
  /// Nanoseconds after which it counts as over in any case. A network that sends it more slowly holds up nobody for longer.
  static let longest: Int64 = 1_000_000_000

  package enum Change { case begins, ends }

  /// Arrival minus place on the timeline, of the sample with the least of it so far.
  package private(set) var least: MonotonicTime
  private let first: MonotonicTime
  /// When the least delay fell last by `ClockFollower.lower`, and to what.
  private var fell: (to: MonotonicTime, at: MonotonicTime)
  private var began: MonotonicTime?
  private let start: MonotonicTime

  /// Media with this delay are there.
  package init(delay: MonotonicTime, now: MonotonicTime) {
    (least, first, start) = (delay, delay, now)
    fell = (delay, now)
  }

  /// It goes on, and what comes belongs to it.
  package var isOn: Bool { began != nil }

  /// Takes the delay of media that have come.
  package mutating func saw(_ delay: MonotonicTime, now: MonotonicTime) -> Change? {
    least = min(least, delay)
    if fell.to &- delay >= ClockFollower.lower { fell = (delay, now) }
    if began == nil, first &- least >= Self.shortest, now &- start < Self.quiet {
      began = now
      return .begins
    }
    return tick(now: now)
  }

  /// Time has passed.
  package func tick(now: MonotonicTime) -> Change? {
    guard let began else { return nil }
    return now &- fell.at >= Self.quiet || now &- began >= Self.longest ? .ends : nil
  }
}
