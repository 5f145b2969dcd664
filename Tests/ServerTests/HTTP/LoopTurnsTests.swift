import NIOCore
import NIOEmbedded
import Testing

@testable import HTTP
@testable import Server

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

  /// Counts the reads that come through.
  private final class Reads: ChannelOutboundHandler {
    typealias OutboundIn = Never
    var count = 0
    func read(context: ChannelHandlerContext) {
      count += 1
      context.read()
    }
  }

  @Test func `bytes of a handshake wait for a turn, and nothing more is read meanwhile`() throws {
    let loop = EmbeddedEventLoop()
    let turns = LoopTurns(eventLoop: loop, room: 1)
    let reads = Reads()
    let (first, second) = (EmbeddedChannel(loop: loop), EmbeddedChannel(loop: loop))
    try first.pipeline.syncOperations.addHandler(HandshakeGate(turns, of: "a"))
    let gate = HandshakeGate(turns, of: "a")
    try second.pipeline.syncOperations.addHandlers([reads, gate])
    try first.writeInbound(ByteBuffer(string: "hello"))
    #expect(try first.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "hello"))
    try second.writeInbound(ByteBuffer(string: "hel"))
    try second.writeInbound(ByteBuffer(string: "lo"))
    second.read()
    #expect(try second.readInbound(as: ByteBuffer.self) == nil)
    #expect(reads.count == 0)
    loop.advanceTime(by: .microseconds(200))
    #expect(try second.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "hello"))
    #expect(reads.count == 1)
    // The handshake is over.
    second.pipeline.syncOperations.removeHandler(gate, promise: nil)
    try second.writeInbound(ByteBuffer(string: "more"))
    #expect(try second.readInbound(as: ByteBuffer.self) == ByteBuffer(string: "more"))
    _ = try first.finish(acceptAlreadyClosed: true)
    _ = try second.finish(acceptAlreadyClosed: true)
  }
}
