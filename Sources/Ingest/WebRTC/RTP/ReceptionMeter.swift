internal import Base
internal import FMP4

/// What a receiver report says of one sender (RFC 3550 A.3, A.8).
struct ReceptionMeter {
  private var base: Int64?
  private var received: Int64 = 0
  private var before: (expected: Int64, received: Int64) = (0, 0)
  private var jitter: Double = 0
  private var transit: Int64?
  private var report: (clock: UInt32, at: MonotonicTime)?
  private let hertz: Int64

  init(hertz: UInt32) { self.hertz = Int64(hertz) }

  mutating func saw(_ packet: RTPPacket, number: Int64, now: MonotonicTime) {
    base = min(base ?? number, number)
    received &+= 1
    let arrival = UInt32(
      truncatingIfNeeded: MediaTime(nanoseconds: now.nanoseconds).rescaled(to: UInt32(clamping: hertz)))
    let transit = Int64(arrival &- packet.timestamp)
    if let last = self.transit {
      let difference = Double(Int32(truncatingIfNeeded: transit &- last).magnitude)
      jitter += (difference - jitter) / 16
    }
    self.transit = transit
  }

  mutating func saw(_ report: SenderReport, now: MonotonicTime) {
    self.report = (UInt32(truncatingIfNeeded: report.clock >> 16), now)
  }

  mutating func reception(of source: UInt32, highest: Int64, now: MonotonicTime) -> RTCPWriter.Reception {
    let expected = highest &- (base ?? highest) &+ 1
    let lost = expected &- received
    let (newExpected, newReceived) = (expected &- before.expected, received &- before.received)
    before = (expected, received)
    let fraction = newExpected > 0 ? max(0, (newExpected &- newReceived) &* 256 / newExpected) : 0
    let since = report.map { (now &- $0.at) / 1000 &* 65_536 / 1_000_000 } ?? 0
    return RTCPWriter.Reception(
      source: source, fractionLost: UInt8(clamping: fraction), lost: Int32(clamping: lost),
      highest: UInt32(truncatingIfNeeded: highest), jitter: UInt32(clamping: Int64(min(jitter, 1e9))),
      lastReport: report?.clock ?? 0, sinceReport: UInt32(clamping: since))
  }
}
