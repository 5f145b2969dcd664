@testable import MPEGTS
import NIOCore
import Publishing
import Testing

@Suite("The table of elementary streams")
struct ElementTableTests {
  private static func stream(_ pid: UInt16, of program: UInt16) -> ElementStream {
    let none = ElementDescriptors(ByteBuffer())
    let element = ProgramElement(pid: pid, streamType: 0x0F, none, inProgram: none)
    return ElementStream(element, of: program, isTaken: true)
  }

  private static func packet(_ pid: UInt16) throws -> TransportPacket {
    let head: [UInt8] = [0x47, UInt8(pid >> 8), UInt8(pid & 255), 0x10]
    return try #require(TransportPacket(ByteBuffer(bytes: head + [UInt8](repeating: 0xFF, count: 184))))
  }

  @Test func `Streams are changed in place, and keep their places when others leave`() throws {
    var table = ElementTable()
    for (number, pid) in [UInt16(300), 100, 200].enumerated() { table.add(Self.stream(pid, of: UInt16(number))) }
    #expect(table.pids == [100, 200, 300] && table.count == 3)
    let removed = table.remove(300)
    let again = table.remove(300)
    #expect(removed?.element.pid == 300 && again == nil)
    var clock = ProgramClock.counter
    var events: [ElementEvent] = []
    var cues: [StreamCue] = []
    let packet = try Self.packet(200)
    for _ in 0..<3 {
      let more = table.change(200) { $0.receive(packet, clock: &clock, to: &events, cues: &cues) }
      #expect(more == 0)
    }
    let missing = table.change(300) { $0.packets }
    #expect(missing == nil)
    #expect(table[200]?.packets == 3 && table[100]?.packets == 0 && table[300] == nil)
    #expect(table.place(of: 200)?.program == 2 && table.place(of: 100)?.program == 1 && table.place(of: 300) == nil)
    #expect(table.all.map(\.element.pid).sorted() == [100, 200])
  }
}
