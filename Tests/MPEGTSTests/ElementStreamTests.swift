import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import Publishing
import Testing

@Suite("One elementary stream of a programme")
struct ElementStreamTests {
  /// An elementary stream whose packets come from a script.
  private struct Driver {
    var stream: ElementStream
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    var cues: [StreamCue] = []

    init(_ type: UInt8 = 0x0F, isTaken: Bool = true) {
      let none = ElementDescriptors(ByteBuffer())
      stream = ElementStream(
        ProgramElement(pid: 256, streamType: type, none, inProgram: none), of: 1, isTaken: isTaken)
    }

    mutating func receive(_ script: TransportScript) throws {
      for start in stride(from: 0, to: script.bytes.count, by: TransportPacketFinder.packetBytes) {
        let bytes = script.bytes[start..<start + TransportPacketFinder.packetBytes]
        let packet = try #require(TransportPacket(ByteBuffer(bytes: bytes)))
        stream.receive(packet, clock: &clock, to: &events, cues: &cues)
      }
    }

    /// The bytes of the frames; -1 for a lost one.
    var frames: [Int] {
      events.compactMap {
        switch $0 {
        case .unit(let unit): Int(unit.payload.getInteger(at: unit.payload.readerIndex, as: UInt8.self) ?? 0)
        case .lost: -1
        default: nil
        }
      }
    }
  }

  private func frame(_ number: UInt8, bytes: Int = 400) -> [UInt8] {
    let time = 90_000 + UInt64(number) * 1920
    return TransportScript.pes(0xC0, time, TransportScript.adts([UInt8](repeating: number, count: bytes)))
  }

  @Test func `Frames come out of packets in order, with their configuration`() throws {
    var (driver, script) = (Driver(), TransportScript())
    for number in 0..<4 as Range<UInt8> { script.add(256, frame(number)) }
    try driver.receive(script)
    #expect(driver.frames == [0, 1, 2, 3] && driver.stream.packets == 12)
    #expect((driver.stream.gaps, driver.stream.duplicates, driver.stream.allScrambled) == (0, 0, 0))
    let records = driver.events.compactMap { event -> [UInt8]? in
      if case .configuration(.aac, let record) = event { Array(record.readableBytesView) } else { nil }
    }
    #expect(records == [[0x11, 0x90]])
    let times = driver.events.compactMap { event -> Int64? in
      if case .unit(let unit) = event { unit.presentation } else { nil }
    }
    #expect(times == [90_000, 91_920, 93_840, 95_760])
  }

  @Test func `What is not taken is counted, and never read`() throws {
    var (driver, script) = (Driver(isTaken: false), TransportScript())
    for number in 0..<4 as Range<UInt8> { script.add(256, frame(number)) }
    script.skipCounter(256)
    script.add(256, frame(4), flags: 0x80)
    try driver.receive(script)
    #expect(driver.stream.packets == 15 && driver.events.isEmpty && driver.stream.heldBytes == 0)
    #expect(!driver.stream.isTrack && !driver.stream.isRead && driver.stream.gaps == 0)
    // A codec that is not taken is no track either, and neither is a table of cues.
    #expect(!Driver(0x02).stream.isTrack && !Driver(0x86).stream.isTrack && Driver().stream.isTrack)
  }

  /// ISO/IEC 13818-1 §2.4.3.3: a packet may be sent twice, with the same counter.
  @Test func `A packet that comes twice is taken once`() throws {
    var (driver, script) = (Driver(), TransportScript())
    script.add(256, frame(0, bytes: 100))
    try driver.receive(script)
    try driver.receive(script)
    #expect(driver.frames == [0] && driver.stream.duplicates == 1 && driver.stream.gaps == 0)
  }

  @Test func `A missing packet costs the frame that it was of, and is counted once`() throws {
    var (driver, whole) = (Driver(), TransportScript())
    for number in 0..<4 as Range<UInt8> { whole.add(256, frame(number)) }
    // The middle one of frame 1.
    var bytes = whole.bytes
    bytes.removeSubrange(4 * 188..<5 * 188)
    for start in stride(from: 0, to: bytes.count, by: 188) {
      let packet = try #require(TransportPacket(ByteBuffer(bytes: bytes[start..<start + 188])))
      driver.stream.receive(packet, clock: &driver.clock, to: &driver.events, cues: &driver.cues)
    }
    #expect(driver.frames.filter { $0 >= 0 } == [0, 2, 3] && driver.frames.contains(-1))
    #expect(driver.stream.gaps == 1 && driver.stream.duplicates == 0)
  }

  @Test func `Scrambled packets are counted, and end what they interrupt`() throws {
    var (driver, script) = (Driver(), TransportScript())
    script.add(256, frame(0))
    script.add(256, frame(1), flags: 0xC0)
    script.add(256, frame(2))
    try driver.receive(script)
    #expect(driver.stream.allScrambled == 3 && driver.frames.filter { $0 >= 0 } == [0, 2])
  }

  @Test func `After a longer loss the next packet is not taken for one in order`() throws {
    var (driver, script) = (Driver(), TransportScript())
    script.add(256, frame(0))
    try driver.receive(script)
    driver.stream.breakOff()
    var next = TransportScript()
    for _ in 0..<3 { next.skipCounter(256) }
    // Its counter is the expected one: 16 packets are missing.
    next.add(256, frame(1))
    try driver.receive(next)
    #expect(driver.stream.gaps == 1)
  }

  @Test func `What is unfinished is bounded, and goes with a drop`() throws {
    var (driver, script) = (Driver(), TransportScript())
    script.add(256, Array(frame(0, bytes: 700).prefix(500)))
    try driver.receive(script)
    #expect(driver.stream.heldBytes > 0 && driver.frames.isEmpty)
    driver.stream.drop(to: &driver.events)
    #expect(driver.stream.heldBytes == 0)
  }

  @Test func `Cues are read beside the media, and what ends within a field is counted`() throws {
    var (driver, script) = (Driver(0x86), TransportScript())
    // A splice_null (SCTE 35 §9.7.1), whose command ends within it when a byte is cut off.
    let splice: [UInt8] = [0xFC, 0x30, 0x11, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xF0, 0, 0, 0, 0]
    let sum = MPEGChecksum.of(ByteBuffer(bytes: splice))
    let section = splice + (0..<4).map { UInt8(sum >> UInt32(24 - 8 * $0) & 255) }
    script.add(table: 256, section)
    try driver.receive(script)
    #expect(driver.stream.isRead && !driver.stream.isTrack && driver.stream.damagedSections == 0)
    var wrong = section
    wrong[13] ^= 1
    var damaged = TransportScript()
    damaged.skipCounter(256)
    damaged.add(table: 256, wrong)
    try driver.receive(damaged)
    #expect(driver.stream.damagedSections == 1, "a wrong checksum")
  }
}
