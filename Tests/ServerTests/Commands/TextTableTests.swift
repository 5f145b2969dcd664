@testable import Server
import Testing

@Suite struct TextTableTests {
  private var table: TextTable {
    var table = TextTable("NAME", "VIEWERS")
    table.add("cam", "3")
    table.add("studio", nil)
    return table
  }

  @Test func programsGetTabsAndNoHead() {
    #expect(table.text(isTerminal: false) == "cam\t3\nstudio\t-\n")
    #expect(TextTable("NAME").text(isTerminal: false).isEmpty)
  }

  @Test func peopleGetColumnsBelowAHead() {
    #expect(table.text(isTerminal: true) == "\u{1B}[1mNAME    VIEWERS\u{1B}[0m\ncam     3\nstudio  -\n")
    #expect(TextTable("NAME").text(isTerminal: true) == "none\n")
  }

  @Test func whatAPublisherSaysCannotSteerTheTerminal() {
    var table = TextTable("SOFTWARE")
    table.add("a\u{1B}[2Jb\tc")
    #expect(!table.text(isTerminal: false).dropLast().contains { $0 == "\u{1B}" || $0 == "\t" })
  }

  @Test(arguments: [("cam", "cam"), ("a b/é", "a%20b%2F%C3%A9"), ("-._~", "-._~")])
  func aTextBecomesOneSegmentOfAnAddress(text: String, escaped: String) {
    #expect(ControlClient.escaped(text) == escaped)
  }

  @Test func lengthsOfTimeAreReadByPeople() {
    #expect(StreamsCommand.age(7384.9) == "2:03:04")
    #expect(StreamsCommand.age(-1) == "0:00:00")
  }
}
