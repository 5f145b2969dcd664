@testable import MPEGTS
import NIOCore
import Testing

@Suite("TransportPacketFinder, TransportPacket and ContinuityCheck")
struct TransportPacketTests {
  /// Packets of one PID, `bytes` of media each.
  private func packets(_ count: Int) -> [[UInt8]] {
    (0..<count).map { number in
      [0x47, 0x41, 0x00, 0x10 | UInt8(number & 15)] + [UInt8](repeating: UInt8(number & 63), count: 184)
    }
  }

  private func found(_ bytes: [UInt8], pieces size: Int) -> (TransportPacketFinder, [[UInt8]]) {
    var finder = TransportPacketFinder()
    var found: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: size) {
      finder.append(ByteBuffer(bytes: bytes[start..<min(start + size, bytes.count)]))
      while let packet = finder.next() { found.append(Array(buffer: packet)) }
    }
    while let packet = finder.next(isEnd: true) { found.append(Array(buffer: packet)) }
    return (finder, found)
  }

  /// Bytes before a packet, and behind it.
  @Test(arguments: [[0, 0], [4, 0], [0, 16]], [1, 7, 188, 1316, 10_000])
  func `Packets of 188, 192 and 204 bytes are found in pieces of any size`(_ form: [Int], _ size: Int) {
    let packets = packets(12)
    let bytes = packets.flatMap {
      [UInt8](repeating: 1, count: form[0]) + $0 + [UInt8](repeating: 2, count: form[1])
    }
    let (finder, found) = found(bytes, pieces: size)
    #expect(found == packets && finder.damagedPackets == 0)
    #expect(finder.skippedBytes == form[0])
  }

  @Test(arguments: [1, 100, 5000])
  func `What is in front is skipped, and a packet without its first byte is one that is damaged`(_ size: Int) {
    var packets = packets(12)
    packets[5][0] = 0
    let (finder, found) = found([0x47, 1, 2] + packets.flatMap(\.self), pieces: size)
    #expect(found == packets.indices.filter { $0 != 5 }.map { packets[$0] })
    #expect(finder.skippedBytes == 3 && finder.damagedPackets == 1)
  }

  @Test func `Without packets nothing comes out, and nothing is kept`() {
    let (finder, found) = found([UInt8](repeating: 0x46, count: 100_000), pieces: 1000)
    #expect(found.isEmpty && finder.skippedBytes == 100_000)
  }

  @Test func `A packet says its PID, its beginning and its clock`() throws {
    let clock: [UInt8] = [0, 0, 0, 1, 0x80 | 0x7E, 5]
    let bytes = [0x47, 0x5F, 0xFE, 0xB7, 7, 0x90] + clock + [UInt8](repeating: 9, count: 176)
    let packet = try #require(TransportPacket(ByteBuffer(bytes: bytes)))
    #expect(packet.pid == 0x1FFE && packet.isUnitStart && packet.isScrambled && packet.continuity == 7)
    #expect(packet.adaptation?.isDiscontinuity == true && packet.adaptation?.isRandomAccess == false)
    // 1 × 2 and the highest bit of the low word, in ticks of 90 kHz; then 5 of 27 MHz.
    #expect(packet.adaptation?.clock == 3 * 300 + 5)
    #expect(packet.payload?.readableBytes == 176)
  }

  @Test(
    arguments: [
      [0x46, 0, 0, 0x10], [0x47, 0x80, 0, 0x10], [0x47, 0, 0, 0x00], [0x47, 0, 0, 0x20, 185], [0x47, 0, 0], [],
    ] as [[UInt8]])
  func `A damaged packet, or one of a form that does not exist, is none`(_ head: [UInt8]) {
    let isWhole = head.count >= 4
    let bytes = head + [UInt8](repeating: 0xFF, count: isWhole ? 188 - head.count : 0)
    #expect(TransportPacket(ByteBuffer(bytes: bytes)) == nil)
  }

  @Test func `A counter that leaps is a gap, the same packet twice is a duplicate, and an announced break is neither`()
    throws
  {
    var check = ContinuityCheck()
    func packet(_ counter: UInt8, _ media: UInt8, isBreak: Bool = false) throws -> TransportPacket {
      let field: [UInt8] = isBreak ? [1, 0x80] : []
      let head: [UInt8] = [0x47, 0x01, 0x00, (isBreak ? 0x30 : 0x10) | counter]
      let bytes = head + field + [UInt8](repeating: media, count: 184 - field.count)
      return try #require(TransportPacket(ByteBuffer(bytes: bytes)))
    }
    #expect(check.check(try packet(14, 1)) == .inOrder)
    #expect(check.check(try packet(15, 2)) == .inOrder)
    #expect(check.check(try packet(0, 3)) == .inOrder, "four bits come round")
    #expect(check.check(try packet(0, 3)) == .duplicate)
    #expect(check.check(try packet(0, 4)) == .gap, "sixteen are missing: the payload is another one")
    #expect(check.check(try packet(2, 5)) == .gap)
    #expect(check.check(try packet(9, 6, isBreak: true)) == .inOrder)
    #expect(check.check(try packet(10, 7)) == .inOrder)
    check.breakOff()
    #expect(check.check(try packet(11, 8)) == .gap)
    #expect(check.check(try packet(12, 9)) == .inOrder)
  }

  @Test func `Times belong to the first access unit that begins in their packet`() {
    var marks = PESTimeMarks()
    func taken(at position: Int) -> UInt64? { marks.take(at: position).presentation }
    marks.add(PESReader.Times(presentation: 10), at: 0)
    marks.add(PESReader.Times(presentation: 20), at: 100)
    marks.add(PESReader.Times(presentation: 30), at: 200)
    #expect(taken(at: 0) == 10)
    #expect(taken(at: 50) == nil, "the second one of its packet")
    #expect(taken(at: 250) == 30, "none began in the packet before")
    #expect(taken(at: 260) == nil)
    for number in 0..<UInt64(MPEGTSLimits.timeMarks + 1) {
      marks.add(PESReader.Times(presentation: number), at: 1000 + Int(number))
    }
    #expect(taken(at: 1000) == nil, "the oldest has gone")
    #expect(taken(at: 1001) == 1)
  }
}
