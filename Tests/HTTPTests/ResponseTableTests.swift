import Base
@testable import HTTP
import NIOCore
import NIOPosix
import ServerSupport
import Synchronization
import Testing

/// Responses that a loop gives to all requests for the same.
@Suite(.timeLimit(.minutes(3))) struct ResponseTableTests {
  private func run(
    _ body: (_ counter: CountedRoute, _ client: HTTPRawClient, _ address: SocketAddress) async throws -> Void
  ) async throws {
    let counter = CountedRoute()
    // One loop: what it knows all connections know.
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    try await HTTPTestServer.run(group: group, tickInterval: .seconds(60), route: { counter.route($0, $1) }) {
      address, _ in
      let client = try await connect(address)
      counter.calls.withLock { $0 = 0 }
      try await body(counter, client, address)
      await client.close()
    }
    try await group.shutdownGracefully()
  }

  /// A connection's first request goes the long way.
  private func connect(_ address: SocketAddress) async throws -> HTTPRawClient {
    let client = try await HTTPRawClient.connect(to: address)
    #expect(try await client.get("/alone").status == 200)
    return client
  }

  @Test func theSameTargetIsAnsweredOnceUntilSomethingChanges() async throws {
    try await run { counter, client, _ in
      for _ in 0..<3 { #expect(try await client.get("/a?b").text == "/a 1") }
      let other = try await client.get("/a?c")
      #expect(other.text == "/a 2")
      counter.stamp.change()
      #expect(try await client.get("/a?b").text == "/a 3")
      #expect(try await client.get("/a?b").text == "/a 3")
      for expected in 4...5 { #expect(try await client.get("/alone").text == "/alone \(expected)") }
    }
  }

  @Test func whatDependsOnMoreThanTheTargetIsAskedForEachTime() async throws {
    try await run { counter, client, _ in
      #expect(try await client.get("/a").text == "/a 1")
      #expect(try await client.get("/a", "Range: bytes=1-1").text == "a")
      #expect(try await client.get("/a", "If-None-Match: \"3\"").status == 304)
      #expect(try await client.get("/a", method: "HEAD")["Content-Length"] == "4")
      #expect(counter.count == 4)
      #expect(try await client.get("/a").text == "/a 1")
      #expect(try await client.get("/a", "Connection: close").text == "/a 5")
      try await client.waitForClose()
    }
  }

  @Test func requestsThatWaitForTheSameAreAnsweredTogether() async throws {
    try await run { counter, client, address in
      var others: [HTTPRawClient] = []
      for _ in 0..<20 { others.append(try await connect(address)) }
      counter.calls.withLock { $0 = 0 }
      for other in others {
        try await other.send("GET /wait HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n")
      }
      let gone = others.removeLast()
      await gone.close()
      for other in others {
        #expect(try await other.response().text == "/wait 1")
        #expect(try await other.response().text == "/next 2")
        await other.close()
      }
      #expect(try await client.get("/wait").text == "/wait 3", "what was waited for is asked for again")
    }
  }

  @Test func aFailureIsTheResponseToAllOfThem() async throws {
    try await run { counter, client, address in
      let other = try await connect(address)
      counter.calls.withLock { $0 = 0 }
      for one in [client, other] { try await one.send("GET /fail HTTP/1.1\r\nHost: x\r\n\r\n") }
      for one in [client, other] { #expect(try await one.response().status == 500) }
      #expect(counter.count == 1)
      await other.close()
    }
  }

  @Test func aClientIsAdmittedOnceAMomentAndWhoIsNotHearsWhy() async throws {
    try await run { counter, client, _ in
      for _ in 0..<200 { #expect(try await client.get("/a", "User-Agent: one").text == "/a 1") }
      let admitted = counter.admission.admitted.withLock { $0 }
      #expect((1..<150).contains(admitted), "\(admitted)")
      let second = try await client.get("/a", "User-Agent: two")
      #expect(second.text == "/a 1")
      counter.admission.isOpen.withLock { $0 = false }
      #expect(try await client.get("/a", "User-Agent: three").status == 503)
      #expect(try await client.get("/b", "User-Agent: three").status == 503)
    }
  }

  /// The media of streams that are over would stay until the next request.
  @Test func nothingIsKeptWithoutAClient() async throws {
    try await run { _, client, address in
      #expect(try await client.get("/b").text == "/b 1")
      await client.close()
      var answer = "/b 1"
      // Until the server has seen that no client is left.
      for _ in 0..<100 where answer == "/b 1" {
        try await Task.sleep(for: .milliseconds(50))
        let next = try await connect(address)
        answer = try await next.get("/b").text
        await next.close()
      }
      #expect(answer != "/b 1")
    }
  }

  /// Clients may reset thousands of requests while the same part is awaited.
  @Test func whoHasLeftIsNotKeptUntilTheResponseComes() {
    final class Connection: ResponseWaiter {
      var answers = 0
      func take(_ answer: SharedResponse, for waiter: SharedResponse.Waiter) { answers += 1 }
    }
    weak var gone: Connection?
    let answer = SharedResponse(awaited: Cacheability(Generation()))
    func join(_ connection: Connection) -> WaitingPlace {
      WaitingPlace(
        in: answer, SharedResponse.Waiter(connection: connection, client: ClientID(number: 1), acceptsGzip: false))
    }
    let (first, last) = (Connection(), Connection())
    _ = join(first)
    var places = Set<Int>()
    for _ in 0..<1000 {
      let connection = Connection()
      gone = connection
      let place = join(connection)
      places.insert(place.place)
      place.leave()
      place.leave()
    }
    #expect(gone == nil)
    #expect(places == [1], "a place that is free is taken again")
    let place = join(last)
    answer.resolve(StandardResponse.failed)
    #expect(first.answers == 1 && last.answers == 1)
    place.leave()
    #expect(!answer.isAwaited)
  }

  @Test func theTableForgetsWhatIsOldAndHoldsSoMuch() {
    let table = ResponseTable()
    let stamp = Generation()
    let target = { (number: Int) in ByteBuffer(string: "/\(number)") }
    table.keep(SharedResponse(awaited: Cacheability(stamp)), for: target(-1))
    let newest = ResponseTable.capacity + 10
    for number in 0...newest {
      table.keep(SharedResponse(StandardResponse.failed, Cacheability(stamp)), for: target(number))
    }
    #expect(table.find(target(-1)) != nil && table.find(target(newest)) != nil, "there is room for what is wanted")
    #expect((0...newest).count { table.find(target($0)) != nil } == ResponseTable.capacity - 1)
    table.purge()
    #expect(table.find(target(newest)) != nil)
    table.purge()
    #expect(table.find(target(newest)) == nil, "nothing stays for long")
    #expect(table.find(target(-1)) != nil, "but what is waited for")
    table.keep(SharedResponse(StandardResponse.failed, Cacheability(stamp)), for: target(0))
    #expect(table.find(target(0)) != nil)
    stamp.change()
    #expect(table.find(target(0)) == nil)
    table.keep(SharedResponse(StandardResponse.failed, Cacheability(stamp)), for: target(1000))
    #expect(table.find(target(1000)) != nil)
    let long = ByteBuffer(repeating: 0x61, count: ResponseTable.targetBytes + 1)
    table.keep(SharedResponse(StandardResponse.failed, Cacheability(stamp)), for: long)
    #expect(table.find(long) == nil)
  }
}
