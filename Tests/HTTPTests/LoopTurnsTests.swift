@testable import HTTP
import NIOCore
import NIOEmbedded
import Testing

@Suite struct LoopTurnsTests {
  /// Writes its name each time that it has a turn.
  private final class Member: LoopTurns.Member {
    let name: String
    let write: (String) -> Void
    init(_ name: String, _ write: @escaping (String) -> Void) { (self.name, self.write) = (name, write) }
    func takeTurn() { write(name) }
  }

  private final class Book {
    var names: [String] = []
  }

  @Test func `a turn has room for so much, and so has the next`() {
    let loop = EmbeddedEventLoop()
    let turns = LoopTurns(eventLoop: loop, room: 3)
    #expect((0..<5).map { _ in turns.take() } == [true, true, true, false, false])
    loop.run()
    #expect((0..<5).map { _ in turns.take() } == [true, true, true, false, false])
  }

  @Test func `addresses that wait go round, and nobody overtakes them`() {
    let loop = EmbeddedEventLoop()
    let turns = LoopTurns(eventLoop: loop, room: 2)
    let book = Book()
    for name in ["a1", "a2", "a3", "b1", "c1"] {
      turns.wait(Member(name) { book.names.append($0) }, of: String(name.prefix(1)))
    }
    #expect(!turns.take())
    loop.advanceTime(by: .microseconds(200))
    #expect(book.names == ["a1", "b1"])
    #expect(!turns.take())
    loop.advanceTime(by: .microseconds(200))
    #expect(book.names == ["a1", "b1", "c1", "a2"])
    loop.advanceTime(by: .microseconds(200))
    #expect(book.names == ["a1", "b1", "c1", "a2", "a3"])
    loop.run()
    #expect(turns.take())
  }

  @Test func `who has more waits again behind the others`() {
    let loop = EmbeddedEventLoop()
    let turns = LoopTurns(eventLoop: loop, room: 1)
    let book = Book()
    var again: Member?
    again = Member("a") { name in
      book.names.append(name)
      if let member = again, book.names.count < 4 { turns.wait(member, of: "a") }
    }
    if let again { turns.wait(again, of: "a") }
    turns.wait(Member("b") { book.names.append($0) }, of: "b")
    for _ in 0..<4 { loop.advanceTime(by: .microseconds(200)) }
    #expect(book.names == ["a", "b", "a", "a"])
    again = nil
  }
}
