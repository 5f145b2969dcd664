internal import Answers
internal import NIOCore
@testable internal import Server
internal import Testing

@Suite struct ServerSentEventsTests {
  private static let text = """
    : weir
    retry: 2000

    id: 7
    event: stream.started
    data: {"id":7}

    :

    event: gap
    data: {"after":1,"from":5}

    data: one
    data: two\r

    event: without data


    """

  private static let messages = [
    ServerSentEvents.Message(kind: "stream.started", data: #"{"id":7}"#),
    ServerSentEvents.Message(kind: "gap", data: #"{"after":1,"from":5}"#),
    ServerSentEvents.Message(data: "one\ntwo"),
  ]

  @Test func `messages are read from pieces of any size`() throws {
    for size in 1...Self.text.utf8.count {
      var (events, found) = (ServerSentEvents(), [ServerSentEvents.Message]())
      var rest = Array(Self.text.utf8)[...]
      while !rest.isEmpty {
        found += try events.read(ByteBuffer(bytes: rest.prefix(size)))
        rest = rest.dropFirst(size)
      }
      #expect(found == Self.messages)
    }
  }

  @Test func `a line of the longest length is read, one byte more is refused`() throws {
    let name = "data: "
    let most = String(repeating: "x", count: ServerSentEvents.longestLine - name.utf8.count)
    var events = ServerSentEvents()
    #expect(try events.read(ByteBuffer(string: "\(name)\(most)\n\n")).map(\.data) == [most])
    #expect(throws: ServerSentEvents.TooLong.self) { try events.read(ByteBuffer(string: "\(name)\(most)x\n")) }
  }

  @Test func `an event of the API is a line of six values`() throws {
    let data = #"{"b":[1,2.5],"a":{"c":null,"d":true}}"#
    let json = #"{"id":5,"kind":"disk.low","stream":null,"who":null,"at":"T","data":\#(data)}"#
    let line = try #require(JSONText.decode(EventAnswer.self, ByteBuffer(string: json)))
    #expect(line.text == "5\tT\tdisk.low\t-\t-\t" + #"{"a":{"c":null,"d":true},"b":[1,2.5]}"#)
  }
}
