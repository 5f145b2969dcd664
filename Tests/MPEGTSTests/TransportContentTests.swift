import Base
import FMP4
import IngestSupport
@testable import MPEGTS
import NIOCore
import Publishing
import Testing

@Suite("What is in a transport stream")
struct TransportContentTests {
  private func content(_ script: TransportScript, _ choice: ProgramChoice = .first) -> TransportContent {
    TransportScript.events(script.bytes, choice).0.content
  }

  private func text(_ element: TransportContent.Element) -> String {
    let program = element.program.map(String.init) ?? "-"
    return "\(element.pid) \(program) \(element.name) \(element.isTaken ? "taken" : "left") \(element.packets)"
  }

  /// Two programmes, a table of the network, and a PID that nobody names.
  private var script: TransportScript {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 4096), (2, pid: 4097)]))
    script.add(
      table: 4096, TransportScript.map(1, [(type: 0x0F, pid: 256, more: []), (type: 0x02, pid: 257, more: [])]))
    script.add(table: 4097, TransportScript.map(2, [(type: 0x0F, pid: 300, more: [])]))
    for pid in [256, 256, 257, 300, 0x10, 700] as [UInt16] { script.add(pid, [1, 2, 3], isUnit: false) }
    return script
  }

  @Test func `PIDs are listed with their programmes and names`() {
    let content = content(script)
    #expect(content.program == 1 && content.programs == [1, 2] && content.otherPackets == 0)
    #expect(
      content.elements.map(text) == [
        "16 - NIT left 1", "256 1 AAC taken 2", "257 1 MPEG-2 video left 1", "300 2 AAC left 1", "700 - unknown left 1",
      ])
    #expect(content.elements.map(\.kind) == [nil, .audio, .video, .audio, nil])
  }

  @Test func `A programme that is chosen is the one that is taken`() {
    let content = content(script, .number(2))
    #expect(content.program == 2)
    #expect(content.elements.filter(\.isTaken).map(\.pid) == [300])
  }

  @Test func `Where nothing can be published it says what there is`() {
    func fault(_ script: TransportScript, _ choice: ProgramChoice = .first) -> String {
      TransportScript.events(script.bytes, choice).0.fault().reason
    }
    func tables(_ elements: [(type: UInt8, pid: UInt16, more: [UInt8])]) -> TransportScript {
      var script = TransportScript()
      script.add(table: 0, TransportScript.association([(1, pid: 4096)]))
      script.add(table: 4096, TransportScript.map(1, elements))
      return script
    }
    let begin = "nothing of the stream can be published: "
    #expect(
      fault(tables([(0x02, 256, []), (0x06, 300, [0x56, 0]), (0x86, 400, [])]))
        == begin
        + "MPEG-2 video (PID 256) is not taken, teletext (PID 300) is not taken; weir takes H.264, HEVC, AAC, Opus,"
        + " AC-3, E-AC-3, MP1, MP2, MP3 and G.711")
    var script = tables([(0x1B, 256, []), (0x0F, 257, []), (0x0F, 258, [])])
    // No key frame in one, and one that is scrambled.
    script.add(256, TransportScript.pes(0xE0, 90_000, [0, 0, 0, 1, 0x41, 0x9A]))
    script.add(258, [1, 2, 3], flags: 0x80)
    #expect(
      fault(script).hasPrefix(
        begin + "H.264 (PID 256) had no frame to begin with, AAC (PID 257) did not come, AAC (PID 258) is scrambled;"))
    #expect(fault(tables([])).hasPrefix(begin + "its maps name no track;"))
    #expect(fault(self.script, .number(7)) == "programme 7 is not in the stream, which has 1, 2; choose one of them")
    let many = (0..<20).map { (type: UInt8(0x02), pid: UInt16(256 + $0), more: [UInt8]()) }
    #expect(fault(tables(many)).contains("MPEG-2 video (PID 263) is not taken, and 12 more;"))
    #expect(fault(TransportScript()).hasPrefix("no programme of an MPEG transport stream: 0 packets"))
  }

  @Test func `PIDs beyond the limit are counted together`() {
    var script = script
    let listed = 3  // of no followed programme, above
    for number in 0..<MPEGTSLimits.elements { script.add(UInt16(1000 + number), [1], isUnit: false) }
    let content = content(script)
    #expect(content.elements.count == 2 + MPEGTSLimits.elements)
    #expect(content.otherPackets == listed)
  }

  @Test func `Without tables there is no programme, and nothing of the null packets`() {
    var script = TransportScript()
    for pid in [TransportPacket.nullPID, 256, 256] { script.add(pid, [1], isUnit: false) }
    let content = content(script)
    #expect(content.program == nil && content.programs.isEmpty)
    #expect(content.elements.map(text) == ["256 - unknown left 2"])
  }
}
