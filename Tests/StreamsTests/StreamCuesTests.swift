import Control
import Publishing
@testable import Streams
import Testing

@Suite struct StreamCuesTests {
  private func told(_ section: [UInt8], _ command: StreamCue.Command = .insert) -> StreamCues.Told {
    StreamCues.Told(cue: StreamCue(pid: 1, command: command, section: section), epoch: "e", wall: nil)
  }

  @Test func `Repetitions and fillers are counted and not told`() {
    var cues = StreamCues()
    let all = [told([1]), told([1]), told([2], .null), told([3], .timeSignal), told([1])]
    let areNew = all.map { cues.add($0) }
    #expect(areNew == [true, false, false, true, false])
    #expect(cues.count == 5 && cues.repeated == 2 && cues.fillers == 1)
    #expect(cues.newest.map(\.cue.section) == [[1], [3]])
    cues.beginPublication()
    let isNew = cues.add(told([1]))
    #expect(isNew)
  }

  @Test func `The newest eight are kept`() {
    var cues = StreamCues()
    for number in 0..<20 { _ = cues.add(told([UInt8(number)])) }
    #expect(cues.newest.map(\.cue.section) == (12..<20).map { [$0] } && cues.count == 20)
  }

  @Test func `A section of 2048 bytes is told, and of 2049 not`() {
    let section = [UInt8](repeating: 0, count: 2048)
    #expect(told(section).cue.sectionText?.count == 2732 && told(section + [0]).cue.sectionText == nil)
    #expect(EventValue.encoded(told(section).cue.sectionText ?? "").json.utf8.count == 2734)
  }
}
