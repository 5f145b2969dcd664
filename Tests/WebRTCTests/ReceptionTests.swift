import Base
import FMP4
import NIOCore
import Publishing
import Support
import Testing
@testable import WebRTC

/// What is counted of a sender's packets, and what comes out of them.
@Suite("Reception of RTP")
struct ReceptionTests {
  private static func time(_ milliseconds: Int64) -> MonotonicTime { .at(milliseconds * 1_000_000) }

  // MARK: numbers

  @Test func `A number is the one nearest to the highest before`() {
    for (numbers, extended) in [
      ([65_534, 65_535, 0, 65_535, 1], [65_534, 65_535, 65_536, 65_535, 65_537]), ([0, 65_535], [0, -1]),
      ([0, 32_767], [0, 32_767]), ([0, 32_768], [0, -32_768]), ([5, 5], [5, 5]),
    ] as [([UInt16], [Int64])] {
      var counter = SequenceCounter()
      #expect(counter.highest == nil)
      #expect(numbers.map { counter.extend($0) } == extended)
      #expect(counter.highest == extended.max())
    }
  }

  // MARK: reports

  private func packet(_ sequence: Int, _ timestamp: Int) throws -> RTPPacket {
    try #require(RTPPackets.packet(UInt16(truncatingIfNeeded: sequence), at: UInt32(truncatingIfNeeded: timestamp)))
  }

  /// RFC 3550 A.3: expected and lost since the beginning, the fraction since the last report.
  @Test func `Losses are counted in all, and since the last report`() throws {
    var meter = ReceptionMeter(hertz: 8000)
    for number in 0..<10 where number != 3 && number != 4 {
      meter.saw(try packet(number, number * 160), number: Int64(number), now: Self.time(Int64(number) * 20))
    }
    let first = meter.reception(of: 7, highest: 9, now: Self.time(200))
    #expect(first.source == 7 && first.lost == 2 && first.fractionLost == 51 && first.highest == 9)
    for number in 10..<20 {
      meter.saw(try packet(number, number * 160), number: Int64(number), now: Self.time(Int64(number) * 20))
    }
    let second = meter.reception(of: 7, highest: 19, now: Self.time(400))
    #expect(second.lost == 2 && second.fractionLost == 0)
    // Nothing came: nothing was expected.
    #expect(meter.reception(of: 7, highest: 19, now: Self.time(600)).fractionLost == 0)
  }

  @Test func `Packets that come twice make the loss negative, and no fraction`() throws {
    var meter = ReceptionMeter(hertz: 8000)
    for _ in 0..<3 { meter.saw(try packet(1, 0), number: 1, now: .zero) }
    let report = meter.reception(of: 7, highest: 1, now: .zero)
    #expect(report.lost == -2 && report.fractionLost == 0)
  }

  /// RFC 3550 A.8: a sixteenth of each difference of transit.
  @Test func `Jitter follows the differences of transit`() throws {
    var meter = ReceptionMeter(hertz: 8000)
    // In time, in time, 20 ms late, in time again: differences 0, 160 and −160.
    for (number, arrival) in [0, 20, 60, 60].enumerated() {
      meter.saw(try packet(number, number * 160), number: Int64(number), now: Self.time(Int64(arrival)))
      let expected: UInt32 = [0, 0, 10, 19][number]
      #expect(meter.reception(of: 7, highest: Int64(number), now: .zero).jitter == expected, "\(number)")
    }
  }

  @Test func `A wrap of the timestamp is no jitter`() throws {
    var meter = ReceptionMeter(hertz: 8000)
    for number in 0..<4 {
      meter.saw(
        try packet(number, Int(UInt32.max) - 200 + number * 160), number: Int64(number),
        now: Self.time(Int64(number) * 20))
    }
    #expect(meter.reception(of: 7, highest: 3, now: .zero).jitter == 0)
  }

  /// RFC 3550 §6.4.1: the middle 32 bits of the report's clock, and 65536ths of a second since it came.
  @Test func `A report of the sender is told back with its age`() throws {
    var meter = ReceptionMeter(hertz: 8000)
    meter.saw(try packet(0, 0), number: 0, now: .zero)
    #expect(meter.reception(of: 7, highest: 0, now: .zero).lastReport == 0)
    meter.saw(SenderReport(source: 7, clock: 0x1122_3344_5566_7788, timestamp: 0), now: Self.time(1000))
    let report = meter.reception(of: 7, highest: 0, now: Self.time(2500))
    #expect(report.lastReport == 0x3344_5566 && report.sinceReport == 65_536 * 3 / 2)
  }

  // MARK: a sender

  private func track(_ coding: CodecID, asksAgain: Bool) -> Negotiation.Track {
    var format = PayloadFormat(98)
    format.readMap(coding == .opus ? "opus/48000/2" : "H264/90000")
    if asksAgain { format.readFeedback("nack") }
    return Negotiation.Track(id: .audio, section: 0, mid: "0", coding: coding, format: format, sources: [1])
  }

  /// Sequence numbers of audio with what is missing in front; frames and lost ones of video.
  private func text(_ events: [RTPReceiver.Event]) -> [String] {
    events.map {
      switch $0 {
      case .frame(let frame): "frame \(frame.timestamp)"
      case .audio(let packet, let lost): "\(packet.sequence) after \(lost)"
      case .lostFrame: "lost"
      }
    }
  }

  @Test func `Audio waits 60 ms for what is missing, and says how much did not come`() throws {
    var receiver = RTPReceiver(track(.opus, asksAgain: false), source: 1)
    var events: [RTPReceiver.Event] = []
    for number in [1, 2, 5, 4] { receiver.receive(try packet(number, number * 960), now: .zero, to: &events) }
    #expect(text(events) == ["1 after 0", "2 after 0"])
    #expect(receiver.tick(now: Self.time(59), to: &events).isEmpty && events.count == 2)
    #expect(receiver.tick(now: Self.time(60), to: &events).isEmpty, "nothing is asked for again")
    #expect(text(events) == ["1 after 0", "2 after 0", "4 after 1", "5 after 0"])
    #expect((receiver.received, receiver.missed, receiver.dropped) == (4, 2, 1))
  }

  @Test func `What is missing is asked for again where both sides speak of it`() throws {
    var receiver = RTPReceiver(track(.opus, asksAgain: true), source: 1)
    var events: [RTPReceiver.Event] = []
    for number in [1, 4] { receiver.receive(try packet(number, number * 960), now: .zero, to: &events) }
    #expect(receiver.tick(now: .zero, to: &events) == [2, 3])
    receiver.receive(try packet(2, 1920), now: Self.time(10), to: &events)
    receiver.receive(try packet(3, 2880), now: Self.time(20), to: &events)
    #expect(text(events) == (1...4).map { "\($0) after 0" } && receiver.repaired == 2)
    #expect(receiver.tick(now: Self.time(30), to: &events).isEmpty)
  }

  /// RFC 4588: senders also repeat packets that came, as padding.
  @Test func `A packet that is repeated fills its gap, and counts once`() throws {
    var receiver = RTPReceiver(track(.opus, asksAgain: true), source: 1)
    var events: [RTPReceiver.Event] = []
    for number in [65_534, 65_535, 1] { receiver.receive(try packet(number, number * 960), now: .zero, to: &events) }
    #expect(receiver.tick(now: .zero, to: &events) == [0])
    func again(_ number: Int) throws -> Bool {
      receiver.receive(repeated: try packet(number, number * 960), now: Self.time(10), to: &events)
    }
    var taken: [Bool] = []
    // There already, held, given on before, missing, and now there.
    for number in [65_535, 1, 65_534, 65_536, 65_536] { taken.append(try again(number)) }
    #expect(taken == [false, false, false, true, false])
    #expect(text(events) == ["65534 after 0", "65535 after 0", "0 after 0", "1 after 0"])
    #expect((receiver.received, receiver.missed, receiver.repaired) == (4, 1, 1))
    let next = try again(2)
    #expect(next, "the newest may have been lost")
  }

  @Test func `An answer by RTX that comes too late makes the next ones be waited for longer`() throws {
    var receiver = RTPReceiver(track(.opus, asksAgain: true), source: 1)
    var events: [RTPReceiver.Event] = []
    for number in [1, 3] { receiver.receive(try packet(number, number * 960), now: .zero, to: &events) }
    #expect(receiver.tick(now: .zero, to: &events) == [2])
    _ = receiver.tick(now: Self.time(399), to: &events)
    #expect(text(events) == ["1 after 0", "3 after 1"])
    let isTaken = receiver.receive(repeated: try packet(2, 1920), now: Self.time(400), to: &events)
    receiver.receive(try packet(5, 4800), now: Self.time(1000), to: &events)
    #expect(!isTaken && receiver.tick(now: Self.time(1000), to: &events) == [4])
    _ = receiver.tick(now: Self.time(1399), to: &events)
    #expect(text(events).count == 2, "it is still waited for")
    #expect(receiver.receive(repeated: try packet(4, 3840), now: Self.time(1400), to: &events))
    #expect(text(events).suffix(2) == ["4 after 0", "5 after 0"] && receiver.repaired == 1)
  }

  @Test func `Packets that only pad hold no number back, and have no media`() throws {
    var receiver = RTPReceiver(track(.opus, asksAgain: false), source: 1)
    var events: [RTPReceiver.Event] = []
    receiver.receive(try packet(1, 0), now: .zero, to: &events)
    let padding = try #require(RTPPacket(RTPPackets.bytes(2, padding: 4, [])))
    receiver.receive(padding, now: .zero, to: &events)
    receiver.receive(try packet(3, 960), now: .zero, to: &events)
    #expect(text(events) == ["1 after 0", "3 after 0"])
  }

  /// A slice begins with the number of its first macroblock (H.264 §7.3.3): the first bit of the first slice of a frame is set.
  @Test(arguments: [true, false])
  func `Video comes out as frames, and one with a hole is lost`(beginIsThere: Bool) throws {
    var receiver = RTPReceiver(track(.h264, asksAgain: false), source: 1)
    var events: [RTPReceiver.Event] = []
    func send(_ number: UInt16, _ frame: UInt32, _ payload: [UInt8], marker: Bool = true) throws {
      let packet = try #require(RTPPackets.packet(number, at: frame * 3000, marker: marker, payload))
      receiver.receive(packet, now: .zero, to: &events)
    }
    try send(1, 1, [0x65, 0x81, 2])
    // A fragment whose second part does not come (RFC 6184 §5.8).
    try send(2, 2, [0x7C, 0x85, 0x83], marker: false)
    #expect(text(events) == ["frame 3000"])
    // Behind the hole a frame from its beginning, or the rest of one.
    try send(4, 3, [0x65, beginIsThere ? 0x84 : 0x44, 5])
    #expect(receiver.tick(now: Self.time(59), to: &events).isEmpty && events.count == 1)
    _ = receiver.tick(now: Self.time(60), to: &events)
    #expect(text(events) == ["frame 3000", "lost", beginIsThere ? "frame 9000" : "lost"])
    #expect((receiver.received, receiver.dropped) == (3, 1))
    // The next one is whole.
    try send(5, 4, [0x65, 0x86, 7])
    #expect(text(events).last == "frame 12000")
  }

  // MARK: the rate that is allowed

  private func figures(_ received: UInt64, _ lost: UInt64) -> LinkFigures {
    var figures = LinkFigures()
    (figures.received, figures.lost) = (received, lost)
    return figures
  }

  @Test func `Without loss the rate follows what comes, by a quarter at most`() {
    var estimate = BitRateEstimate(now: .zero)
    estimate.saw(500_000)
    #expect(estimate.next(figures(100, 0), now: Self.time(1000)) == 3_125_000)
    estimate.saw(150_000)
    #expect(estimate.next(figures(200, 0), now: Self.time(2000)) == 3_125_000, "1.2 Mbit/s comes: no less is told")
  }

  @Test func `A fiftieth of loss lets it rise, a tenth holds it, more lowers it`() {
    for (lost, expected) in [(2, 3_125_000), (3, 2_500_000), (10, 2_500_000), (11, 3_200_000)] as [(UInt64, UInt64)] {
      var estimate = BitRateEstimate(now: .zero)
      estimate.saw(500_000)
      #expect(estimate.next(figures(100, lost), now: Self.time(1000)) == expected, "\(lost)")
    }
  }

  @Test func `It stays in its bounds, whatever comes`() {
    var estimate = BitRateEstimate(now: .zero)
    var told: [UInt64] = []
    for second in 1...40 {
      estimate.saw(.max)
      told.append(estimate.next(figures(UInt64(second) * 100, 0), now: Self.time(Int64(second) * 1000)))
    }
    #expect(told.last == 20_000_000 && told.allSatisfy { $0 <= 20_000_000 })
    // Nothing comes, and all of it is lost. Time that stands still divides by nothing.
    #expect(estimate.next(figures(4000, 1000), now: Self.time(40_000)) == 300_000)
  }
}
