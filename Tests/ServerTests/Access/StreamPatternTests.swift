import Ingest
import Testing

@testable import Basics
@testable import Server

@Suite struct StreamPatternTests {
  @Test(arguments: [
    ("cam", "cam", true), ("cam", "cam-1", false), ("cam-*", "cam-1", true), ("cam-*", "cam-", true),
    ("cam-*", "cam", false), ("*-hd", "cam-hd", true), ("*-hd", "hd", false), ("*", "anything", true),
    ("a*b*c", "abc", true), ("a*b*c", "a1b2b3c", true), ("a*b*c", "acb", false), ("a*a", "a", false),
    ("a*a", "aa", true), ("a*bc*c", "abc", false), ("a**b", "ab", true),
  ])
  func `A star stands for any letters or none`(pattern: String, name: String, matches: Bool) throws {
    let name = try #require(StreamName(name))
    #expect(try StreamPattern(parsing: pattern).matches(name) == matches)
  }

  @Test(arguments: ["", "a b", "-x", "é*", "a/*", "**", String(repeating: "a", count: 65)])
  func `What no name can match is no pattern`(text: String) {
    #expect(throws: ValueError.self) { _ = try StreamPattern(parsing: text) }
  }

  @Test func `A name is more specific than a pattern, and more letters than fewer`() throws {
    let patterns = try ["*", "c*", "cam-*", "cam-*-*", "cam-1"].map { text in try StreamPattern(parsing: text) }
    let sorted = patterns.sorted { $0.isMoreSpecific(than: $1) }
    #expect(sorted.map(\.description) == ["cam-1", "cam-*-*", "cam-*", "c*", "*"])
  }
}
