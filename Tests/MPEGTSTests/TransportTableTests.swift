import Base
import IngestSupport
@testable import MPEGTS
import NIOCore
import Publishing
import Support
import Testing

@Suite("Tables and packets of a transport stream")
struct TransportTableTests {
  private static let audio = (type: UInt8(0x0F), pid: UInt16(256), more: [UInt8]())

  private func audio(_ count: Int, _ script: inout TransportScript, pid: UInt16 = 256, from ticks: UInt64 = 0) {
    for index in 0..<count {
      let frame = TransportScript.adts([1, UInt8(index & 255), 2, 3])
      script.add(pid, TransportScript.pes(0xC0, ticks + UInt64(index) * 1920, frame))
    }
  }

  @Test func `A program begins with its map and goes with the association`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [Self.audio]))
    audio(3, &script)
    script.add(table: 0, TransportScript.association(version: 1, []))
    audio(2, &script)
    let (stream, events) = TransportScript.events(script.bytes)
    #expect(events.maps.map(\.program) == [7])
    #expect(events.units(256).map(\.presentation) == [0, 1920, 3840])
    #expect(events.contains { if case .programEnded(7) = $0 { true } else { false } })
    #expect(stream.counts.unreadPackets == 2)
  }

  @Test func `A section with a wrong checksum counts as damage and changes nothing`() {
    var script = TransportScript()
    var wrong = TransportScript.association([(7, pid: 32)])
    wrong[9] ^= 1
    script.add(table: 0, wrong)
    let (stream, events) = TransportScript.events(script.bytes)
    #expect(events.isEmpty && stream.counts.damagedSections == 1)
  }

  @Test func `A section over several packets is put together, and dropped when one is missing`() {
    var elements = (0..<40).map {
      (type: UInt8(6), pid: UInt16(600 + $0), more: [5, 4, 0x4B, 0x4C, 0x56, 0x41] as [UInt8])
    }
    elements.insert(Self.audio, at: 0)
    for isComplete in [true, false] {
      var script = TransportScript()
      script.add(table: 0, TransportScript.association([(7, pid: 32)]))
      let section = [0] + TransportScript.map(7, elements)
      script.add(32, Array(section.prefix(184)))
      if !isComplete { script.skipCounter(32) }
      script.add(32, Array(section.dropFirst(184)), isUnit: false)
      let events = TransportScript.events(script.bytes).1
      #expect(events.maps.map(\.elements.count) == (isComplete ? [41] : []))
      if isComplete { #expect(events.maps[0].elements[1].content == .data(name: "KLV")) }
    }
  }

  @Test func `A new version of a map ends and begins tracks, and keeps the others`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [Self.audio, (0x0F, 257, [10, 4, 0x64, 0x65, 0x75, 0])]))
    audio(2, &script)
    audio(2, &script, pid: 257)
    script.add(table: 32, TransportScript.map(7, version: 1, [Self.audio, (0x86, 300, [])]))
    audio(2, &script, from: 3840)
    audio(2, &script, pid: 257)
    let (stream, events) = TransportScript.events(script.bytes)
    #expect(events.maps.map { $0.elements.map(\.language) } == [[nil, "deu"], [nil, nil]])
    #expect(events.units(256).map(\.presentation) == [0, 1920, 3840, 5760])
    #expect(events.units(257).count == 2 && events.records(256).count == 1)
    #expect(stream.counts.gaps == 0)
  }

  @Test func `Programs are chosen by number; the first with a track is the usual one`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 32), (2, pid: 33), (3, pid: 34)]))
    script.add(table: 32, TransportScript.map(1, [(0x86, 300, [])]))
    script.add(table: 33, TransportScript.map(2, [Self.audio]))
    script.add(table: 34, TransportScript.map(3, [(0x0F, 257, [])]))
    audio(2, &script)
    audio(3, &script, pid: 257)
    func counts(_ choice: ProgramChoice) -> [Int] {
      let events = TransportScript.events(script.bytes, choice).1
      return [events.units(256).count, events.units(257).count]
    }
    #expect(counts(.first) == [2, 0])
    #expect(counts(.number(3)) == [0, 3])
    #expect(counts(.number(9)) == [0, 0])
    #expect(counts(.all) == [2, 3])
  }

  @Test func `Times go on through wraps, from any place and for all tracks alike`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [Self.audio, (0x0F, 257, [])]))
    // A frame each two hours on one track and then on the other: two wraps and a half.
    let step: UInt64 = 2 * 3600 * 90_000
    for index in 0..<32 {
      let ticks = ((1 << 33) - 10 + UInt64(index) * step) & (1 << 33 - 1)
      let frame = TransportScript.adts([1, 2, 3, 4])
      script.add(index % 2 == 0 ? 256 : 257, TransportScript.pes(0xC0, ticks, frame))
    }
    let events = TransportScript.events(script.bytes).1
    let times = (events.units(256) + events.units(257)).map(\.presentation).sorted()
    #expect(times == (0..<32).map { Int64(1 << 33) - 10 + Int64($0) * Int64(step) })
  }

  @Test func `Scrambled packets are dropped and counted`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [Self.audio]))
    script.add(256, TransportScript.pes(0xC0, 0, TransportScript.adts([1, 2])), flags: 0x80)
    audio(1, &script, from: 1920)
    let (stream, events) = TransportScript.events(script.bytes)
    #expect(stream.counts.scrambled == 1 && events.units(256).map(\.presentation) == [1920])
  }

  @Test func `A cue of SCTE 35 has its time on the program's clock`() {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, [Self.audio, (0x86, 300, [])]))
    audio(1, &script, from: 90_000)
    // A time signal at 900,000 ticks, adjusted by 10.
    var cue: [UInt8] = [0xFC, 0x30, 22, 0, 0, 0, 0, 0, 10, 0, 0xFF, 0xF0, 5, 6, 0xFE, 0, 0x0D, 0xBB, 0xA0, 0, 0]
    let sum = MPEGChecksum.of(ByteBuffer(bytes: cue))
    cue += [UInt8(sum >> 24), UInt8(sum >> 16 & 255), UInt8(sum >> 8 & 255), UInt8(sum & 255)]
    script.add(table: 300, cue)
    let events = TransportScript.events(script.bytes).1
    #expect(events.splices.map(\.presentation) == [900_010])
    #expect(events.splices.map(\.command) == [.timeSignal])
  }

  @Test func `A program has at most sixteen audio tracks, and no more than sixty-four streams`() {
    var script = TransportScript()
    let elements = (0..<100).map { (type: UInt8(0x0F), pid: UInt16(1000 + $0), more: [UInt8]()) }
    script.add(table: 0, TransportScript.association([(7, pid: 32)]))
    script.add(table: 32, TransportScript.map(7, elements))
    for index in 0..<100 { audio(1, &script, pid: UInt16(1000 + index)) }
    let (stream, events) = TransportScript.events(script.bytes)
    #expect(events.maps.first?.elements.count == 64)
    #expect((0..<100).count { !events.units(UInt16(1000 + $0)).isEmpty } == 16)
    #expect(stream.counts.unreadPackets == 84)
  }

  @Test func `Bytes without a program end the publication, once the wait for one is over`() throws {
    var publication = TransportPublication(reading: ClockReading(wall: 0, monotonic: 0))
    var actions: [PublicationAction] = []
    try publication.receive(ByteBuffer(repeating: 0x47, count: 5000), now: 0, to: &actions)
    #expect(publication.deadline(after: 0) == .at(TransportPublication.programWait))
    try publication.tick(now: .at(TransportPublication.programWait - 1), to: &actions)
    #expect(throws: WireError.self) {
      var late: [PublicationAction] = []
      var copy = publication
      try copy.tick(now: .at(TransportPublication.programWait), to: &late)
    }
  }
}
