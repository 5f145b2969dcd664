import Base
import Control
import Publishing
import Testing

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

  // MARK: Many patterns

  private func name(_ text: String) throws -> StreamName { try #require(StreamName(text)) }

  @Test func `The index finds what a walk over all patterns finds`() throws {
    var generator = SystemRandomNumberGenerator()
    func text(_ letters: [Character], _ lengths: ClosedRange<Int>) -> String {
      String(
        (0..<Int.random(in: lengths, using: &generator)).map { _ in letters.randomElement(using: &generator) ?? "a" })
    }
    for _ in 0..<50 {
      let texts = Set((0..<60).map { _ in text(["a", "b", "-", "*"], 1...6) })
      let patterns = texts.compactMap { try? StreamPattern(parsing: $0) }.sorted { $0.isMoreSpecific(than: $1) }
      let index = StreamPatternIndex(patterns)
      for _ in 0..<100 {
        guard let name = StreamName("a" + text(["a", "b", "-"], 0...6)) else { continue }
        #expect(index.first(matching: name) == patterns.firstIndex { $0.matches(name) }, "\(name) in \(patterns)")
      }
    }
    #expect(StreamPatternIndex([]).first(matching: try name("a")) == nil)
  }

  @Test func `Ten thousand patterns cost a lookup little`() throws {
    let patterns = try (0..<10_000).map { try StreamPattern(parsing: "cam-\($0)-*") } + [.all]
    let index = StreamPatternIndex(patterns)
    let (hit, miss) = (try name("cam-9999-x"), try name("studio"))
    let time = ContinuousClock().measure {
      for _ in 0..<10_000 {
        #expect(index.first(matching: hit) == 9999 && index.first(matching: miss) == 10_000)
      }
    }
    // A walk over all of them takes more than a minute.
    #expect(time < .seconds(10), "\(time)")
  }
}
