import IngestSupport
@testable import MPEGTS
import NIOCore
import Testing

@Suite("PSISectionReader and ProgramAssociation")
struct PSISectionTests {
  private func sections(_ payloads: [(bytes: [UInt8], isStart: Bool)]) -> (PSISectionReader, [PSISection]) {
    var reader = PSISectionReader()
    let found = payloads.flatMap { reader.receive(ByteBuffer(bytes: $0.bytes), isUnitStart: $0.isStart) }
    return (reader, found)
  }

  private let table = TransportScript.association([(1, pid: 32), (2, pid: 33)])

  @Test func `A section that is split at any place is put together`() {
    for place in 1..<table.count {
      let (reader, found) = sections([([0] + table[..<place], true), (Array(table[place...]), false)])
      #expect(found.map(\.tableID) == [0] && reader.damaged == 0, "\(place)")
    }
  }

  @Test func `The end of one section and whole ones share a packet, and stuffing ends it`() {
    let place = table.count - 5
    let second = [5] + Array(table[place...]) + table + table + [0xFF, 0xFF, 0]
    let (reader, found) = sections([([0] + table[..<place], true), (second, true)])
    #expect(found.count == 3 && reader.damaged == 0)
  }

  @Test func `A wrong checksum, a pointer that leads out, and a section that is too long count as damage`() {
    var wrong = table
    wrong[table.count - 1] ^= 1
    #expect(sections([([0] + wrong, true)]).0.damaged == 1)
    #expect(sections([([200] + table, true)]).0.damaged == 1)
    let long: [UInt8] = [0, 0xBF, 0xFF] + [UInt8](repeating: 0, count: 180)
    let (reader, found) = sections([([0] + long, true), ([0] + table, true)])
    #expect(reader.damaged == 1 && found.count == 1, "what comes behind is read")
  }

  @Test func `A section whose end is missing is dropped where the next one begins`() {
    let (reader, found) = sections([([0] + table.dropLast(3), true), ([0] + table, true)])
    #expect(reader.damaged == 1 && found.count == 1)
  }

  @Test func `Programmes are told when they change, and only once all sections have come`() throws {
    var association = ProgramAssociation()
    func receive(_ bytes: [UInt8]) throws -> Bool {
      association.receive(try #require(PSISection(ByteBuffer(bytes: bytes))))
    }
    #expect(try receive(table))
    #expect(association.entries.map(\.program) == [1, 2] && association.entries.map(\.pid) == [32, 33])
    #expect(try !receive(table), "the same again")
    #expect(try receive(TransportScript.association(version: 1, [(0, pid: 16), (3, pid: 40)])))
    #expect(association.entries == [ProgramAssociation.Entry(program: 3, pid: 40)], "number 0 is no programme")
    let most = (1...UInt16(MPEGTSLimits.programs + 1)).map { ($0, pid: 100 + $0) }
    #expect(try receive(TransportScript.association(version: 2, most)))
    #expect(association.entries.count == MPEGTSLimits.programs)
  }
}
