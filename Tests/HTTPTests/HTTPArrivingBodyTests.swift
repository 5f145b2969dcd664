@testable import HTTP
import NIOCore
import ServerSupport
import Synchronization
import Testing

@Suite("Bodies that are taken while they arrive", .timeLimit(.minutes(3)))
struct HTTPArrivingBodyTests {
  /// What came of the body of one request, and the means to steer its connection.
  final class Intake: Sendable {
    struct State {
      var bytes: [UInt8] = []
      /// How often bytes were handed in.
      var receipts = 0
      var isFinished = false
      var abandonments: [String] = []
      var source: NIOLoopBound<any ArrivingBodySource>?
      var loop: (any EventLoop)?
    }

    let state = Mutex(State())
    let acceptsAtOnce: Bool
    let isMedia: Bool

    init(acceptsAtOnce: Bool = true, isMedia: Bool = false) {
      (self.acceptsAtOnce, self.isMedia) = (acceptsAtOnce, isMedia)
    }

    var bytes: [UInt8] { state.withLock { $0.bytes } }
    var count: Int { state.withLock { $0.bytes.count } }

    func steer(_ body: @escaping @Sendable (any ArrivingBodySource) -> Void) async throws {
      let (source, loop) = state.withLock { ($0.source, $0.loop) }
      let bound = try #require(source)
      try await #require(loop).submit { body(bound.value) }.get()
    }
  }

  final class Body: ArrivingBody {
    private let intake: Intake
    var isMedia: Bool { intake.isMedia }
    init(_ intake: Intake) { self.intake = intake }

    func begin(_ source: any ArrivingBodySource, on eventLoop: any EventLoop) {
      let bound = NIOLoopBound(source, eventLoop: eventLoop)
      intake.state.withLock { ($0.source, $0.loop) = (bound, eventLoop) }
      if intake.acceptsAtOnce { source.accept() }
    }
    func receive(_ bytes: ByteBuffer) {
      intake.state.withLock { state in
        state.bytes += Array(bytes.readableBytesView)
        state.receipts += 1
      }
    }
    func finish() {
      let source = intake.state.withLock { state in
        state.isFinished = true
        return state.source
      }
      source?.value.respond(.text("taken", cache: .never))
    }
    func abandon(_ reason: String) { intake.state.withLock { $0.abandonments.append(reason) } }
  }

  /// A frame of HTTP/2 may have a single byte, in a slice of a whole read.
  @Test func `What is held of a body is in one buffer of its own, whatever it came in`() {
    let arriving = ArrivingRequest(
      HTTPRequest(method: .post, target: RequestTarget(segments: [])), Body(Intake()), keepsAlive: true,
      awaitsContinue: false)
    for byte in 0..<65_535 {
      var read = ByteBuffer()
      read.reserveCapacity(BriefReadAllocator.largest)
      read.writeInteger(UInt8(truncatingIfNeeded: byte))
      arriving.hold(read)
    }
    #expect(arriving.heldBytes == 65_535)
    var parts: [ByteBuffer] = []
    while let part = arriving.takeHeld() { parts.append(part) }
    #expect(parts.map(\.readableBytes) == [16_384, 16_384, 16_384, 16_383])
    #expect(parts.allSatisfy { $0.storageCapacity <= 65_536 })
    #expect(parts.flatMap { Array($0.readableBytesView) } == (0..<65_535).map { UInt8(truncatingIfNeeded: $0) })
    #expect(arriving.heldBytes == 0)
  }

  private func serve(
    _ intake: Intake, _ body: (_ client: HTTPRawClient) async throws -> Void
  ) async throws {
    try await HTTPTestServer.run(intake: { Body(intake) }) { address, _ in
      try await body(try await HTTPRawClient.connect(to: address))
    }
  }

  @Test(arguments: [true, false])
  func `A body longer than what is collected arrives whole, and the connection goes on`(_ isChunked: Bool) async throws
  {
    let intake = Intake(acceptsAtOnce: false)
    let bytes = patternBytes(0..<300_000)
    try await serve(intake) { client in
      let framing = isChunked ? "Transfer-Encoding: chunked" : "Content-Length: \(bytes.count)"
      try await client.send("POST /in HTTP/1.1\r\nHost: x\r\n\(framing)\r\n\r\n")
      try await client.wait("the body did not begin") { _ in intake.state.withLock { $0.source != nil } }
      try await client.send(
        isChunked ? Array("2710\r\n".utf8) + bytes[..<10_000] + Array("\r\n".utf8) : Array(bytes[..<10_000]))
      try await Task.sleep(for: .milliseconds(50))
      #expect(intake.count == 0, "before it is accepted")
      try await intake.steer { $0.accept() }
      let rest = Array(bytes[10_000...])
      let end = isChunked ? Array("46CD0\r\n".utf8) + rest + Array("\r\n0\r\n\r\n".utf8) : rest
      try await client.send(end + Array("GET /next HTTP/1.1\r\nHost: x\r\n\r\n".utf8))
      #expect(try await client.response().text == "taken")
      #expect(try await client.response().text == "get /next 0")
      #expect(intake.bytes == bytes && intake.state.withLock { $0.abandonments.isEmpty })
    }
  }

  @Test func `A client that waits is asked for its body once it is accepted`() async throws {
    let intake = Intake(acceptsAtOnce: false)
    try await serve(intake) { client in
      try await client.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
      try await client.wait("the body did not begin") { _ in intake.state.withLock { $0.source != nil } }
      #expect(client.received.isEmpty)
      try await intake.steer { $0.accept() }
      try await client.wait("no 100") { $0.received.starts(with: Array("HTTP/1.1 100 Continue\r\n\r\n".utf8)) }
      try await client.send("abc")
      try await client.wait("no response") { String(decoding: $0.received, as: UTF8.self).hasSuffix("taken") }
    }
  }

  @Test func `A pause holds the client back, and nothing is lost`() async throws {
    let intake = Intake()
    let bytes = patternBytes(0..<16 << 20)
    try await serve(intake) { client in
      try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(bytes.count)\r\n\r\n")
      try await client.wait("the body did not begin") { _ in intake.state.withLock { $0.source != nil } }
      try await intake.steer { $0.pause() }
      async let sending: Void = client.send(bytes)
      try await Task.sleep(for: .milliseconds(200))
      #expect(intake.count == 0)
      try await intake.steer { $0.resume() }
      try await sending
      #expect(try await client.response().text == "taken")
      #expect(intake.bytes == bytes)
    }
  }

  /// Frames of video and audio in turn. Buffers that become small after each small burst would take four reads for a pair.
  @Test func `A burst of a publisher is read at once, and requests follow as before`() async throws {
    let intake = Intake(isMedia: true)
    let bursts = (0..<40).map { patternBytes(0..<($0 % 2 == 0 ? 12_000 : 200)) }
    try await serve(intake) { client in
      let length = bursts.reduce(0) { $0 + $1.count }
      try await client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n")
      try await client.wait("the body did not begin") { _ in intake.state.withLock { $0.source != nil } }
      var sent = 0
      for burst in bursts {
        try await client.send(burst)
        sent += burst.count
        try await client.wait("a burst did not arrive") { [sent] _ in intake.count == sent }
      }
      #expect(try await client.response().text == "taken")
      // The system may divide some of them.
      #expect(intake.state.withLock { $0.receipts } < 60)
      for number in 0..<3 {
        try await client.send("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await client.response().text == "get /\(number) 0")
      }
    }
  }

  @Test func `A refusal within the body is read before the connection ends`() async throws {
    let intake = Intake()
    try await serve(intake) { client in
      try await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
      try await client.wait("the body did not begin") { _ in intake.count == 3 }
      try await intake.steer { $0.respond(Problem.badRequest("no media").response) }
      #expect(try await client.response().status == 400)
      try? await client.send("3\r\nabc\r\n")
      try await client.waitForClose()
      #expect(intake.count == 3 && intake.state.withLock { $0.abandonments.isEmpty })
    }
  }

  @Test func `A client that leaves or breaks the framing has abandoned its body, once`() async throws {
    for broken in [nil, "zz\r\n"] {
      let intake = Intake()
      try await serve(intake) { client in
        try await client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        try await client.wait("the body did not begin") { _ in intake.count == 3 }
        if let broken {
          try await client.send(broken)
          #expect(try await client.response().status == 400)
        } else {
          await client.close()
        }
        try await client.wait("it is not told") { _ in !intake.state.withLock { $0.abandonments.isEmpty } }
        try await Task.sleep(for: .milliseconds(50))
        #expect(intake.state.withLock { $0.abandonments.count == 1 && !$0.isFinished })
      }
    }
  }
}
