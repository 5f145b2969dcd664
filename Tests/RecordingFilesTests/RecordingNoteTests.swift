import Base
import RecordingFiles
import Testing

@Suite struct RecordingNoteTests {
  @Test func twoThousandBytesAreAcceptedAndOneMoreIsRefused() throws {
    #expect(try RecordingNote(String(repeating: "ä", count: 1000)).description.utf8.count == 2000)
    #expect(throws: ValueError.self) { try RecordingNote(String(repeating: "ä", count: 1000) + "x") }
  }

  @Test func lineEndsAndJoinersStayAndControlsAreRefused() throws {
    for text in ["one\ntwo", "\u{645}\u{6CC}\u{200C}\u{62E}", "\u{1F469}\u{200D}\u{1F680}"] {
      #expect(try RecordingNote(text).description == text)
    }
    for text in ["a\0b", "a\rb", "\u{202E}gnp.exe", "\u{2066}x\u{2069}", "\u{1B}[2J"] {
      #expect(throws: ValueError.self) { try RecordingNote(text) }
    }
  }
}
