import Base
import Testing
@testable import WebRTC

private func time(_ milliseconds: Int64) -> MonotonicTime { MonotonicTime(nanoseconds: milliseconds * 1_000_000) }

/// When a viewer by WebRTC is held back: only where both its estimate and its reports say that its network is full.
@Suite struct ViewerNetworkTests {
  /// A viewer that reports once a second, of 100 packets.
  private struct Viewer {
    var network = ViewerNetwork()
    var second: Int64 = 0
    var lost: Int32 = 0
    var more: Int64 = 0

    /// A second that calm ones came before, so that loss and round trips can be compared.
    init() { for _ in 0..<2 { pass() } }

    mutating func pass(trip: Int64 = 30, lost: Int32 = 0, held: Int64? = nil) {
      second += 1
      self.lost += lost
      network.sentReport(clock: UInt32(second + 100), at: time(second * 1000))
      report(at: second * 1000 + 950, clock: UInt32(second + 100), held: held ?? 950 - trip)
    }

    mutating func report(at now: Int64, clock: UInt32, held: Int64) {
      network.take(
        RTCPWriter.Reception(
          source: 1, fractionLost: 255, lost: lost,
          highest: UInt32(truncatingIfNeeded: 0xFFFF_FF80 + second * 100 + more),
          jitter: 0, lastReport: clock, sinceReport: UInt32(max(0, held) * 65536 / 1000)), now: time(now))
    }

    mutating func estimates(_ estimate: Int64, sent: Int64 = 100_000) {
      network.take(estimate: estimate, sent: sent, stream: 60_000)
    }
  }

  @Test func `A low estimate alone holds nothing back`() {
    var viewer = Viewer()
    viewer.estimates(12_000)
    // Later than usual, and somewhat lost, as by radio.
    for _ in 0..<3 { viewer.pass(trip: 179, lost: 9) }
    #expect(viewer.network.limit == nil)
    #expect(viewer.network.estimate == 12_000)
  }

  @Test func `Loss and a queue alone hold nothing back`() {
    var viewer = Viewer()
    viewer.estimates(76_000)
    for _ in 0..<3 { viewer.pass(trip: 900, lost: 40) }
    #expect(viewer.network.limit == nil)
    // Low, because little was sent.
    viewer.estimates(12_000, sent: 15_000)
    #expect(viewer.network.limit == nil)
  }

  @Test(arguments: [(trip: Int64(182), lost: Int32(0)), (30, 10)])
  func `Both together hold back, and each calm second allows more`(trip: Int64, lost: Int32) {
    var viewer = Viewer()
    viewer.estimates(40_000)
    for _ in 0..<2 { viewer.pass(trip: trip, lost: lost) }
    #expect(viewer.network.limit == 50_000)
    viewer.pass(lost: 2)
    #expect(viewer.network.limit == 60_000, "neither calm nor full")
    viewer.pass(lost: 1)
    #expect(viewer.network.limit == 90_000)
    viewer.pass()
    #expect(viewer.network.limit == 130_000)
    for _ in 0..<2 { viewer.pass(trip: trip, lost: lost) }
    #expect(viewer.network.limit == 50_000)
    viewer.estimates(60_000)
    #expect(viewer.network.limit == nil, "the estimate reaches what the stream has")
  }

  @Test func `After many calm seconds nothing is held back, whatever the estimate says`() {
    var viewer = Viewer()
    viewer.estimates(100)
    viewer.pass(lost: 10)
    #expect(viewer.network.limit == 8192, "the least")
    for _ in 0..<12 { viewer.pass() }
    #expect(viewer.network.limit == nil)
  }

  @Test func `One round trip that is late decides nothing, two do`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    viewer.pass(trip: 400)
    #expect(viewer.network.limit == nil)
    viewer.pass()
    viewer.pass(trip: 400)
    #expect(viewer.network.limit == nil)
    viewer.pass(trip: 400)
    #expect(viewer.network.limit == 50_000)
  }

  @Test func `Many reports in a second count as one`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    viewer.pass(lost: 10)
    #expect(viewer.network.limit == 50_000)
    for step in Int64(1)..<9 {
      viewer.more += 60
      viewer.report(
        at: viewer.second * 1000 + 950 + step * 100, clock: UInt32(viewer.second + 100), held: 920 + step * 100)
    }
    #expect(viewer.network.limit == 50_000)
    viewer.pass()
    #expect(viewer.network.limit == 70_000)
  }

  @Test func `A loss among few packets is no full network`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    viewer.lost += 5
    viewer.report(at: viewer.second * 1000 + 2000, clock: UInt32(viewer.second + 100), held: 1970)
    #expect(viewer.network.limit == nil)
    viewer.pass()
    #expect(viewer.network.limit == nil, "5 of 100")
  }

  @Test func `What is asked for again was lost`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    for _ in 0..<9 { viewer.network.asks(for: [65_530, 65_535, 3]) }
    viewer.network.asks(for: [9, 10, 11, 12, 13, 3])
    viewer.network.asks(for: [14])
    viewer.pass()
    #expect(viewer.network.limit == nil, "nine, some of them more than once")
    viewer.network.asks(for: (20..<30).map { $0 })
    viewer.pass()
    #expect(viewer.network.limit == 50_000)
    viewer.pass()
    #expect(viewer.network.limit == 70_000)
  }

  @Test(arguments: [1800, 2300, 2900, 3400, 4800] as [Int64])
  func `A queue of seconds is a queue`(trip: Int64) {
    var viewer = Viewer()
    viewer.estimates(40_000)
    for _ in 0..<9 {
      viewer.second += 1
      viewer.network.sentReport(clock: UInt32(viewer.second + 100), at: time(viewer.second * 1000))
      let late = (trip + 500) / 1000
      guard viewer.second > late + 2 else { continue }
      viewer.report(
        at: viewer.second * 1000 + (trip + 500) % 1000, clock: UInt32(viewer.second - late + 100), held: 500)
    }
    #expect(viewer.network.limit == 50_000)
  }

  @Test func `A viewer that reports each five seconds is judged, too`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    for second in 1...Int64(20) {
      viewer.second += 1
      viewer.network.sentReport(clock: UInt32(viewer.second + 100), at: time(viewer.second * 1000))
      if second % 5 == 0 {
        viewer.report(at: viewer.second * 1000 + 800, clock: UInt32(viewer.second + 100), held: 500)
      }
    }
    #expect(viewer.network.limit == 50_000)
  }

  @Test func `The shortest word for a sender report counts`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    viewer.pass(trip: 300)
    viewer.pass(trip: 300)
    #expect(viewer.network.limit == 50_000)
    viewer.pass()
    #expect(viewer.network.limit == 70_000)
    // The way back was late, and then it was not.
    for _ in 0..<2 {
      viewer.second += 1
      viewer.network.sentReport(clock: UInt32(viewer.second + 100), at: time(viewer.second * 1000))
      viewer.more -= 100
      viewer.report(at: viewer.second * 1000 + 900, clock: UInt32(viewer.second + 100), held: 600)
      viewer.more += 100
      viewer.report(at: viewer.second * 1000 + 950, clock: UInt32(viewer.second + 100), held: 920)
    }
    #expect(viewer.network.limit == 150_000)
  }

  @Test(arguments: [(UInt32(0), true), (101, true), (0, false)])
  func `A viewer that knows none of the newest sender reports gets them late`(clock: UInt32, hasKnown: Bool) {
    var viewer = Viewer()
    if !hasKnown {
      (viewer.network, viewer.second) = (ViewerNetwork(), 0)
      viewer.report(at: 500, clock: clock, held: 0)
    }
    viewer.estimates(40_000)
    for _ in 0..<4 {
      viewer.second += 1
      viewer.network.sentReport(clock: UInt32(viewer.second + 100), at: time(viewer.second * 1000))
    }
    viewer.report(at: viewer.second * 1000 + 600, clock: clock, held: 4570)
    // Some never tell of one.
    #expect(viewer.network.limit == (hasKnown ? 50_000 : nil))
  }

  @Test func `Before the first sender report is known, loss alone counts`() {
    var network = ViewerNetwork()
    network.take(estimate: 40_000, sent: 100_000, stream: 60_000)
    var reception = RTCPWriter.Reception(
      source: 1, fractionLost: 0, lost: 0, highest: 7, jitter: 0, lastReport: 0, sinceReport: 0)
    network.take(reception, now: time(0))
    reception.highest = 107
    network.take(reception, now: time(1000))
    #expect(network.limit == nil)
    (reception.highest, reception.lost) = (207, 10)
    network.take(reception, now: time(2000))
    #expect(network.limit == 50_000)
  }

  @Test func `A path that is longer for good becomes the usual one`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    for _ in 0..<20 { viewer.pass(trip: 300) }
    #expect(viewer.network.limit == 50_000)
    for _ in 0..<130 { viewer.pass(trip: 300) }
    #expect(viewer.network.limit == nil)
  }

  @Test func `A trip that cannot be makes no other one long`() {
    var viewer = Viewer()
    viewer.estimates(40_000)
    // The viewer's clock was set forward.
    viewer.pass(held: 3_600_500)
    for _ in 0..<3 { viewer.pass(trip: 170) }
    #expect(viewer.network.limit == nil)
  }

  @Test func `Numbers at their limits do no harm`() {
    var viewer = Viewer()
    viewer.network.take(estimate: .max, sent: .max, stream: .max)
    viewer.pass(lost: .max - viewer.lost, held: 65_535_000)
    #expect(viewer.network.limit.map { $0 > 0 } == true)
    viewer.lost = .min
    viewer.second += 1 << 25
    viewer.pass()
    viewer.second -= 40
    viewer.pass()
    viewer.network.take(estimate: 0, sent: 0, stream: 0)
    #expect(viewer.network.limit == nil)
  }
}
