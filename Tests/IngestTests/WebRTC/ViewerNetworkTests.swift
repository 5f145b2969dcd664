import Testing

@testable import Ingest

/// When a viewer by WebRTC is held back: only where both its estimate and its reports say that its network is full.
@Suite struct ViewerNetworkTests {
  private static func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  /// A sender report at a second, and what comes back after `way` milliseconds.
  private static func exchange(
    _ network: inout ViewerNetwork, second: Int64, way: Int64, lost: UInt8 = 0, held: Int64 = 500
  ) {
    network.reports(clock: UInt32(second + 100), now: time(second * 1000))
    let reception = reception(UInt32(second + 100), held: held, lost: lost)
    network.take(reception, now: time(second * 1000 + held + way))
  }

  private static func reception(_ clock: UInt32, held: Int64, lost: UInt8 = 0) -> RTCPWriter.Reception {
    RTCPWriter.Reception(
      source: 1, fractionLost: lost, lost: 0, highest: 0, jitter: 0, lastReport: clock,
      sinceReport: UInt32(held * 65536 / 1000))
  }

  @Test func `A low estimate without loss and without a queue holds nothing back`() {
    var network = ViewerNetwork()
    Self.exchange(&network, second: 1, way: 30)
    network.take(estimate: 12_000, sent: 100_000, stream: 60_000)
    #expect(network.limit == nil)
    // Somewhat later, as from a busy machine, and lost here and there, as by radio.
    Self.exchange(&network, second: 2, way: 170, lost: 12)
    #expect(network.limit == nil)
    #expect(network.estimate == 12_000)
  }

  @Test func `Loss or a queue without a low estimate holds nothing back`() {
    var network = ViewerNetwork()
    Self.exchange(&network, second: 1, way: 30)
    network.take(estimate: 90_000, sent: 100_000, stream: 60_000)
    Self.exchange(&network, second: 2, way: 900, lost: 100)
    #expect(network.limit == nil)
    network.take(estimate: 12_000, sent: 10_000, stream: 60_000)
    #expect(network.limit == nil, "low because little was sent")
  }

  @Test(arguments: [(way: Int64(180), lost: UInt8(0)), (30, 26)])
  func `Both together hold back, and calm reports allow more each time`(way: Int64, lost: UInt8) {
    var network = ViewerNetwork()
    Self.exchange(&network, second: 1, way: 30)
    network.take(estimate: 40_000, sent: 100_000, stream: 60_000)
    Self.exchange(&network, second: 2, way: way, lost: lost)
    #expect(network.limit == 50_000)
    Self.exchange(&network, second: 3, way: 30, lost: 4)
    #expect(network.limit == 70_000)
    // More loss than that, but not much: neither more nor less.
    Self.exchange(&network, second: 4, way: 30, lost: 5)
    #expect(network.limit == 70_000)
    Self.exchange(&network, second: 5, way: 30)
    #expect(network.limit == 100_000)
    Self.exchange(&network, second: 6, way: way, lost: lost)
    #expect(network.limit == 50_000)
    // The estimate reaches what the stream needs.
    network.take(estimate: 60_000, sent: 50_000, stream: 60_000)
    #expect(network.limit == nil)
  }

  @Test func `After many calm reports nothing is held back, whatever the estimate says`() {
    var network = ViewerNetwork()
    Self.exchange(&network, second: 1, way: 30)
    network.take(estimate: 100, sent: 100_000, stream: 60_000)
    Self.exchange(&network, second: 2, way: 30, lost: 255)
    #expect(network.limit == 8192, "the least")
    for second in 3..<Int64(20) { Self.exchange(&network, second: second, way: 30) }
    #expect(network.limit == nil)
  }

  @Test func `Reports that know no late sender report tell of a queue, and those before the first tell nothing`() {
    var network = ViewerNetwork()
    network.take(estimate: 40_000, sent: 100_000, stream: 60_000)
    network.take(Self.reception(0, held: 0, lost: 255), now: Self.time(500))
    #expect(network.limit == nil)
    Self.exchange(&network, second: 1, way: 30)
    for second in 2...Int64(4) { network.reports(clock: UInt32(second + 100), now: Self.time(second * 1000)) }
    network.take(Self.reception(101, held: 3400), now: Self.time(4430))
    #expect(network.limit == 50_000)
  }

  @Test func `Numbers at their limits do no harm`() {
    var network = ViewerNetwork()
    Self.exchange(&network, second: 1, way: 30)
    network.take(estimate: .max, sent: .max, stream: .max)
    Self.exchange(&network, second: 2, way: -40, lost: 255, held: 65_535_000)
    #expect(network.limit.map { $0 > 0 } == true)
    network.take(estimate: 0, sent: 0, stream: 0)
    #expect(network.limit == nil)
  }
}
