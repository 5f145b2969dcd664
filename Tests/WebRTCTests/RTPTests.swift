import Base
import FMP4
import NIOCore
import Testing
@testable import WebRTC

/// Packets of RTP, their order, and the clocks of their senders.
@Suite struct RTPTests {
  @Test func `A packet is read without its padding, with its extensions`() throws {
    let bytes = RTPPackets.bytes(7, at: 9, marker: true, extensions: [0x31, 1, 2, 0x40, 0x61], padding: 3, [5, 6])
    let packet = try #require(RTPPacket(bytes))
    #expect(packet.sequence == 7 && packet.timestamp == 9 && packet.hasMarker && packet.payloadType == 98)
    #expect(Array(packet.payload.readableBytesView) == [5, 6])
    #expect(packet.value(of: 3).map { Array($0.readableBytesView) } == [1, 2])
    #expect(packet.value(of: 4).map { String(buffer: $0) } == "a")
    #expect(packet.value(of: nil) == nil)
  }

  @Test func `A header that exceeds its packet is refused`() {
    let whole = Array(RTPPackets.bytes(7, extensions: [0x31, 1, 2], padding: 2, []).readableBytesView)
    #expect(RTPPacket(ByteBuffer(bytes: whole)) != nil)
    for count in 0..<whole.count - 2 { #expect(RTPPacket(ByteBuffer(bytes: whole.prefix(count))) == nil, "\(count)") }
    var lies = whole
    lies[0] |= 15
    #expect(RTPPacket(ByteBuffer(bytes: lies)) == nil)
    lies = whole
    lies[whole.count - 1] = 0
    #expect(RTPPacket(ByteBuffer(bytes: lies)) == nil)
    lies[whole.count - 1] = 200
    #expect(RTPPacket(ByteBuffer(bytes: lies)) == nil)
  }

  // MARK: order

  private struct Row {
    var window = ReorderWindow(patience: 100)
    var steps: [ReorderWindow.Step] = []

    mutating func receive(_ number: UInt16, now: Int64 = 0) throws {
      window.receive(try #require(RTPPackets.packet(number)), now: MonotonicTime(nanoseconds: now), to: &steps)
    }

    /// Numbers of packets; a gap is a negative count.
    mutating func take() -> [Int] {
      defer { steps = [] }
      return steps.map {
        switch $0 {
        case .packet(let packet): Int(packet.sequence)
        case .gap(let count): -count
        }
      }
    }
  }

  @Test func `Packets come out in order, across the wrap, and once`() throws {
    var row = Row()
    for number: UInt16 in [65_534, 0, 65_535, 65_535, 2, 1, 1, 3] { try row.receive(number) }
    #expect(row.take() == [65_534, 65_535, 0, 1, 2, 3])
    #expect(row.window.repaired == 0 && row.window.dropped == 0, "none was asked for")
  }

  @Test func `A missing packet is asked for, waited for and given up`() throws {
    var row = Row()
    for number: UInt16 in [10, 13] { try row.receive(number) }
    #expect(row.window.missing(now: .zero) == [11, 12])
    #expect(row.window.missing(now: MonotonicTime(nanoseconds: 1)) == [])
    try row.receive(12, now: 50)
    row.window.expire(now: MonotonicTime(nanoseconds: 99), to: &row.steps)
    #expect(row.take() == [10])
    row.window.expire(now: MonotonicTime(nanoseconds: 100), to: &row.steps)
    #expect(row.take() == [-1, 12, 13])
    try row.receive(11, now: 101)
    #expect(row.take() == [])
  }

  private static func time(_ milliseconds: Int64) -> MonotonicTime {
    MonotonicTime(nanoseconds: milliseconds * 1_000_000)
  }

  @Test func `A sender that answers slowly is asked less often, and waited for longer`() throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    for number: UInt16 in [0, 2] { try row.receive(number) }
    #expect(row.window.missing(now: .zero) == [1])
    try row.receive(1, now: 160_000_000)
    #expect(row.take() == [0, 1, 2])
    try row.receive(4, now: 200_000_000)
    #expect(row.window.missing(now: Self.time(200)) == [3])
    #expect(row.window.missing(now: Self.time(350)) == [])
    #expect(row.window.missing(now: Self.time(360)) == [3])
    // Three answers of 160 ms, and 60 ms.
    row.window.expire(now: Self.time(739), to: &row.steps)
    #expect(row.take() == [])
    row.window.expire(now: Self.time(740), to: &row.steps)
    #expect(row.take() == [-1, 4])
  }

  @Test func `An answer that comes too late is learnt from, within a bound`() throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    for number: UInt16 in [0, 2] { try row.receive(number) }
    #expect(row.window.missing(now: .zero) == [1])
    row.window.expire(now: Self.time(250), to: &row.steps)
    try row.receive(1, now: 900_000_000)
    #expect(row.take() == [0, -1, 2])
    try row.receive(4, now: 1_000_000_000)
    row.window.expire(now: Self.time(1599), to: &row.steps)
    #expect(row.take() == [])
    row.window.expire(now: Self.time(1600), to: &row.steps)
    #expect(row.take() == [-1, 4])
  }

  @Test func `One request is followed at a time, and their mean falls fast and rises slowly`() {
    var answers = AnswerTime()
    answers.asked(for: 1, .zero)
    answers.asked(for: 2, Self.time(10))
    answers.came(2, Self.time(20))
    #expect(answers.usual == nil)
    answers.came(1, Self.time(100))
    #expect(answers.usual == 100_000_000)
    answers.asked(for: 3, Self.time(200))
    answers.came(3, Self.time(220))
    #expect(answers.usual == 60_000_000)
    // One that has no answer is given up after two seconds.
    answers.asked(for: 4, Self.time(300))
    answers.asked(for: 5, Self.time(2400))
    answers.came(4, Self.time(2410))
    answers.came(5, Self.time(2480))
    #expect(answers.usual == 61_250_000)
  }

  @Test func `While nothing was read nothing was late`() throws {
    var row = Row()
    for number: UInt16 in [0, 2] { try row.receive(number) }
    // Read behind it, but before the look that finds it.
    try row.receive(4, now: 1000)
    row.window.pardon(1000, now: MonotonicTime(nanoseconds: 1000))
    row.window.expire(now: MonotonicTime(nanoseconds: 1099), to: &row.steps)
    #expect(row.take() == [0])
    row.window.expire(now: MonotonicTime(nanoseconds: 1100), to: &row.steps)
    #expect(row.take() == [-1, 2, -1, 4], "that one has waited as long")
  }

  @Test func `What waits is bounded`() throws {
    var row = Row()
    try row.receive(0)
    for number in 2...UInt16(WebRTCLimits.heldPackets + 2) { try row.receive(number) }
    #expect(row.take().prefix(3) == [0, -1, 2])
    try row.receive(40_000)
    #expect(row.take() == [-1, 40_000])
  }

  // MARK: wrong numbers

  /// Receives a row of numbers, 30 ms apart, and looks at what waits as a session does. Returns what came out.
  private func take(_ numbers: some Sequence<Int>, from start: Int64 = 0, _ row: inout Row) throws -> [Int] {
    var now = start
    for number in numbers {
      try row.receive(UInt16(truncatingIfNeeded: number), now: now * 1_000_000)
      for _ in 0..<3 {
        now += 10
        row.window.expire(now: Self.time(now), to: &row.steps)
      }
    }
    return row.take()
  }

  @Test(arguments: [257, 1500, 2999])
  func `One packet far ahead is left out, and costs no other one`(_ step: Int) throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    let out = try take(Array(65_500..<65_540) + [65_540 + step] + Array(65_540..<65_640), &row)
    #expect(out == (65_500..<65_640).map { $0 & 0xFFFF })
    #expect((row.window.jumps, row.window.dropped, row.window.late, row.window.repaired) == (1, 1, 0, 0))
  }

  /// What is nearer waits as behind a loss, so the row goes on behind it. It comes back to where the sender is, also where several
  /// packets were wrong, or all from there on.
  @Test(
    arguments: [([100], 1), ([255], 1), ([1500, 1501, 1502], 1), ([20_000], 2), ([20_000, 20_001], 2)]
      as [([Int], UInt64)])
  func `A row that went on too far comes back within a second`(ahead: [Int], jumps: UInt64) throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    _ = try take(0..<40, &row)
    _ = try take(ahead.map { 40 + $0 }, from: 1200, &row)
    let out = try take(40..<140, from: 1300, &row)
    // 250 ms until it is gone on, half a second until that is known, and a packet.
    let last = Array(out.reversed().prefix { $0 >= 0 && $0 < 140 }.reversed())
    #expect(last.count >= 70 && last == Array((140 - last.count)..<140), "\(out)")
    #expect(row.window.jumps == jumps)
  }

  @Test func `Two packets far ahead are behind a gap, in either order`() throws {
    for pair in [[1501, 1502], [1502, 1501]] {
      var row = Row(window: ReorderWindow(patience: 250_000_000))
      #expect(try take([0, 1] + pair + Array(1503..<1520), &row) == [0, 1, -1499] + Array(1501..<1520))
      #expect(row.window.jumps == 0 && row.window.dropped == 1499)
    }
  }

  @Test func `One that nothing comes behind waits as long as behind any loss, and is no wrong one`() throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    for number: UInt16 in [0, 1, 600] { try row.receive(number) }
    row.window.expire(now: Self.time(249), to: &row.steps)
    #expect(row.take() == [0, 1])
    row.window.expire(now: Self.time(250), to: &row.steps)
    #expect(row.take() == [-598, 600])
    #expect(row.window.jumps == 0)
  }

  /// Packets that were given up come late, beside new ones.
  @Test func `Packets that come too late take no row back`() throws {
    var row = Row(window: ReorderWindow(patience: 250_000_000))
    let late = (2..<40).flatMap { [$0, $0 + 98] }
    let out = try take([0, 1] + Array(60..<100) + late, &row)
    #expect(out.filter { $0 > 1 } == Array(60..<138) && row.window.jumps == 0)
  }

  // MARK: feedback

  @Test func `Missing numbers are told in blocks of seventeen`() {
    var writer = RTCPWriter()
    writer.again([5, 6, 22, 23], of: 9)
    let bytes = Array(writer.bytes.readableBytesView.dropFirst(8))
    #expect(bytes == [0x81, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 9, 0, 5, 0, 1, 0, 22, 0, 1])
  }

  @Test func `An estimate keeps eighteen bits`() {
    var writer = RTCPWriter()
    writer.estimate(2_500_000, of: [9])
    let bytes = Array(writer.bytes.readableBytesView.dropFirst(8))
    #expect(Array(bytes[12..<16]) == Array("REMB".utf8))
    let exponent = Int(bytes[17] >> 2)
    let mantissa = Int(bytes[17] & 3) << 16 | Int(bytes[18]) << 8 | Int(bytes[19])
    #expect(bytes[16] == 1 && abs(mantissa << exponent - 2_500_000) < 1 << exponent)
  }

  @Test func `Arrivals are told with what is missing`() throws {
    var log = ArrivalLog(origin: .zero)
    for (number, milliseconds) in [(UInt16(10), Int64(64)), (11, 65), (13, 200)] {
      log.saw(number, now: MonotonicTime(nanoseconds: milliseconds * 1_000_000))
    }
    let feedback = log.feedback()
    let body = try #require(feedback)
    // Four packets from 10, reference 1; small, small, missing, large; 0, 4 and 540 ticks of 250 µs.
    #expect(Array(body.readableBytesView) == [0, 10, 0, 4, 0, 0, 1, 0, 0xD4, 0x80, 0, 4, 0x02, 0x1C, 0, 0])
    #expect(log.feedback() == nil)
  }

  @Test func `A compound packet is read as far as it goes`() {
    let report: [UInt8] =
      [0x80, 200, 0, 6, 0, 0, 0, 7, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 9] + [UInt8](repeating: 0, count: 8)
    let bytes = report + [0x81, 203, 0, 1, 0, 0, 0, 7]
    let expected = SenderReport(source: 7, clock: 0x1_8000_0000, timestamp: 9)
    #expect(RTCPReader.read(ByteBuffer(bytes: bytes)) == [.report(expected), .bye(7)])
    #expect(expected.nanoseconds == 1_500_000_000)
    for count in 0..<bytes.count { _ = RTCPReader.read(ByteBuffer(bytes: bytes.prefix(count))) }
    #expect(RTCPReader.read(ByteBuffer(bytes: report.dropLast())) == [])
  }

  @Test func `What a receiver got is read, and nothing behind the end of its report`() {
    let reception = RTCPWriter.Reception(
      source: 9, fractionLost: 26, lost: -3, highest: 70_000, jitter: 12, lastReport: 0x1234_5678, sinceReport: 65_536)
    let bytes = RTCPWriter([reception, reception]).bytes
    #expect(RTCPReader.read(bytes) == [.received(reception), .received(reception)])
    // Of somebody who sends, too.
    let sending = Array("\u{0}\u{0}\u{0}\u{7}".utf8) + [UInt8](repeating: 1, count: 20)
    let both = [0x82, 200, 0, 18] + sending + Array(bytes.readableBytesView.dropFirst(8))
    #expect(RTCPReader.read(ByteBuffer(bytes: both)).dropFirst() == [.received(reception), .received(reception)])
    // It counts three, and has two.
    var more = Array(bytes.readableBytesView)
    more[0] = 0x83
    #expect(RTCPReader.read(ByteBuffer(bytes: more)) == [.received(reception), .received(reception)])
    for count in 0..<more.count { _ = RTCPReader.read(ByteBuffer(bytes: more.prefix(count))) }
  }

  // MARK: clocks

  @Test func `Before reports arrival counts, after them the sender's clock`() {
    var clocks = SenderClocks()
    let now = MonotonicTime(nanoseconds: 1_000_000_000)
    #expect(clocks.time(.video, .video, 90_000, hertz: 90_000, now: now) == 1_000_000_000)
    // The audio of the same moment comes 50 ms later.
    let later = now &+ 50_000_000
    #expect(clocks.time(.audio, .audio, 48_000, hertz: 48_000, now: later) == 1_050_000_000)
    clocks.receive(.video, wall: 5_000_000_000, timestamp: 90_000)
    clocks.receive(.audio, wall: 5_000_000_000, timestamp: 48_000)
    #expect(clocks.time(.audio, .audio, 48_960, hertz: 48_000, now: later) == 1_020_000_000)
    #expect(clocks.time(.video, .video, 93_000, hertz: 90_000, now: later) == 1_033_333_333)
  }

  @Test func `Once media runs, nothing moves by more than a frame at a time`() {
    var clocks = SenderClocks()
    var now = MonotonicTime(nanoseconds: 0)
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: now)
    _ = clocks.time(.audio, .audio, 0, hertz: 48_000, now: now &+ 50_000_000)
    clocks.isRunning = true
    clocks.receive(.video, wall: 0, timestamp: 0)
    clocks.receive(.audio, wall: 0, timestamp: 0)
    var offsets: [Int64] = []
    for step in 1...600 {
      now = now &+ 20_000_000
      let time = clocks.time(.audio, .audio, UInt32(step * 960), hertz: 48_000, now: now)
      offsets.append(time - Int64(step) * 20_000_000)
    }
    #expect(zip(offsets, offsets.dropFirst()).allSatisfy { abs($0 - $1) <= SenderClocks.step })
    #expect(offsets.first == 30_000_000 && offsets.last == 10_000_000)
  }

  @Test func `Reports with the jitter of a thread move nothing`() {
    var clocks = SenderClocks()
    var now = MonotonicTime(nanoseconds: 0)
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: now)
    _ = clocks.time(.audio, .audio, 0, hertz: 48_000, now: now)
    clocks.isRunning = true
    for step in 1...600 {
      now = now &+ 20_000_000
      if step % 50 == 1 {
        clocks.receive(.video, wall: now.nanoseconds, timestamp: UInt32(step * 1800))
        let jitter: Int64 = step % 100 == 1 ? 18_000_000 : -18_000_000
        clocks.receive(.audio, wall: now.nanoseconds &+ jitter, timestamp: UInt32(step * 960))
      }
      let time = clocks.time(.audio, .audio, UInt32(step * 960), hertz: 48_000, now: now)
      #expect(time == now.nanoseconds)
    }
  }

  @Test func `A sender that begins again begins when it comes`() {
    var clocks = SenderClocks()
    _ = clocks.time(.audio, .audio, 48_000, hertz: 48_000, now: .zero)
    clocks.forget(.audio)
    let later = MonotonicTime(nanoseconds: 1_000_000_000)
    #expect(clocks.time(.audio, .audio, 7, hertz: 48_000, now: later) == 1_000_000_000)
    #expect(clocks.time(.audio, .audio, 967, hertz: 48_000, now: later) == 1_020_000_000)
  }

  @Test func `A report of another time is no clock`() {
    var clocks = SenderClocks()
    _ = clocks.time(.video, .video, 0, hertz: 90_000, now: .zero)
    _ = clocks.time(.audio, .audio, 0, hertz: 48_000, now: .zero)
    clocks.receive(.video, wall: 0, timestamp: 0)
    clocks.receive(.audio, wall: 100_000_000_000, timestamp: 0)
    #expect(clocks.time(.audio, .audio, 960, hertz: 48_000, now: .zero) == 20_000_000)
  }
}
