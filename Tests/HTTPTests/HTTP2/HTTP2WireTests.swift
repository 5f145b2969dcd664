import Base
@testable import HTTP
import Logging
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import ServerSupport
import Storage
import Synchronization
import Testing

/// The frames of a connection, without sockets and TLS.
@Suite struct HTTP2WireTests {
  /// A connection whose other end is the test.
  private final class Wire {
    /// Holds back what the server writes, as a socket whose client does not read.
    private final class Valve: ChannelOutboundHandler {
      typealias OutboundIn = ByteBuffer
      var isShut = false
      /// As TLS does, whose client has to close as well.
      var staysOpen = false
      private var held: [EventLoopPromise<Void>?] = []
      func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if isShut { held.append(promise) } else { context.write(data, promise: promise) }
      }
      func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        if staysOpen { held.append(promise) } else { context.close(mode: mode, promise: promise) }
      }
      deinit { for promise in held { promise?.fail(ChannelError.ioOnClosedChannel) } }
    }

    let channel = EmbeddedChannel()
    let loop: LoopContext
    private let valve = Valve()
    private(set) var received: [UInt8] = []

    static func limiter(_ limits: HTTPLimits) -> ConnectionLimiter {
      ConnectionLimiter(
        Reloadable(HTTPPolicy(limits, origins: .playersOnly)), limits: limits, memory: .unlimited,
        descriptors: .unlimited, traffic: HTTPTraffic(), waker: Waker())
    }

    init(
      limits: HTTPLimits = HTTPLimits(), limiter: ConnectionLimiter? = nil, route: @escaping HTTPTestServer.Route,
      intake: (@Sendable () -> any ArrivingBody)? = nil
    ) throws {
      let traffic = HTTPTraffic()
      let services = HTTPServices(
        responder: HTTPTestServer(route: route, intake: intake), passes: nil, limits: limits, proxies: .none,
        policy: Reloadable(HTTPPolicy(limits, origins: .playersOnly)), limiter: limiter ?? Self.limiter(limits),
        traffic: traffic, pools: SendingPools(limit: 1 << 30, threads: NIOSingletons.posixBlockingThreadPool),
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
      loop = LoopContext(eventLoop: channel.eventLoop, interval: .milliseconds(250), traffic: traffic) { 5 }
      let peer = try #require(HTTPPeer(of: channel, kind: .plain, services: services, loop: loop))
      try channel.pipeline.syncOperations.addHandlers(
        [valve, HTTP2Handler(services: services, loop: loop, peer: peer)])
      try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
      try send(HTTP2Bytes.preface + HTTP2Bytes.acknowledgement)
    }

    func send(_ bytes: [UInt8]) throws {
      try channel.writeInbound(ByteBuffer(bytes: bytes))
      try take()
    }

    func take() throws {
      while let part = try channel.readOutbound(as: ByteBuffer.self) { received += part.readableBytesView }
    }

    func stopReading() { valve.isShut = true }

    /// The client does not close what the server has closed.
    func stayOpen() { valve.staysOpen = true }

    /// The server stops.
    func stop() throws {
      for case let connection as HTTP2Connection in loop.currentMembers { connection.stop() }
      try take()
    }

    func wait(_ time: TimeAmount) throws {
      channel.embeddedEventLoop.advanceTime(by: time)
      try take()
    }

    var frames: [HTTP2Bytes.Frame] { HTTP2Bytes.frames(received) }

    deinit {
      valve.staysOpen = false
      _ = try? channel.finish(acceptAlreadyClosed: true)
    }
  }

  private static let text: HTTPTestServer.Route = { _, _ in .now(.text("x", cache: .never)) }
  /// Responds too late.
  private static let later: HTTPTestServer.Route = { _, loop in
    .later(loop.scheduleTask(in: .hours(1)) { HTTPResponse(status: .noContent) }.futureResult)
  }

  @Test func `settings come first, then the acknowledgement of the client's`() throws {
    let wire = try Wire(route: Self.text)
    #expect(wire.frames.map(\.type) == [4, 4])
    #expect(wire.frames.first?.payload == [0, 3, 0, 0, 0, 100, 0, 6, 0, 1, 0, 0])
    #expect(wire.frames.last?.payload == [])
  }

  @Test func `a response is a head and its body, and ends its stream`() throws {
    let wire = try Wire(route: Self.text)
    try wire.send(HTTP2Bytes.request("/", stream: 1) + HTTP2Bytes.request("/", stream: 3))
    #expect(wire.frames.dropFirst(2).map(\.type) == [1, 0, 1, 0])
    #expect(wire.frames.dropFirst(2).map(\.stream) == [1, 1, 3, 3])
    #expect(wire.frames.last?.payload == Array("x".utf8))
  }

  /// RFC 7541 §4.2: a client that has named a size must be told one with the next fields.
  @Test func `a client that names the size of its table is told that nothing is in it, once`() throws {
    let wire = try Wire(route: Self.text)
    try wire.send(http2Frame(4, [0, 1, 0, 0, 0, 0]) + HTTP2Bytes.request("/", stream: 1))
    try wire.send(HTTP2Bytes.request("/", stream: 3))
    let heads = wire.frames.filter { $0.type == 1 }.map { Array($0.payload.prefix(2)) }
    #expect(heads.map(\.first) == [0x20, 0x88] && heads.first?.last == 0x88)
  }

  @Test func `a window that becomes too wide ends its stream, or the connection`() throws {
    let wire = try Wire(route: Self.later)
    let most: [UInt8] = [0x7F, 0xFF, 0xFF, 0xFF]
    try wire.send(HTTP2Bytes.request("/", stream: 1) + http2Frame(8, stream: 1, most))
    #expect(HTTP2Bytes.resets(wire.received) == [1: 3])
    #expect(HTTP2Bytes.goAways(wire.received).isEmpty)
    try wire.send(http2Frame(8, most))
    #expect(HTTP2Bytes.goAways(wire.received) == [3])
    let other = try Wire(route: Self.later)
    try other.send(HTTP2Bytes.request("/", stream: 1) + http2Frame(8, stream: 1, [0, 0, 0, 1]))
    try other.send(http2Frame(4, [0, 4, 0x7F, 0xFF, 0xFF, 0xFF]))
    #expect(HTTP2Bytes.goAways(other.received) == [3], "all windows grow with the initial one")
  }

  /// Otherwise a client frees its places by faults of its own, and the server goes on with what it asked for.
  @Test func `windows that are opened too wide over and over end the connection`() throws {
    let wire = try Wire(route: Self.later)
    for number in 0..<250 where HTTP2Bytes.goAways(wire.received).isEmpty {
      let stream = UInt32(2 * number + 1)
      try wire.send(HTTP2Bytes.request("/", stream: stream) + http2Frame(8, stream: stream, [0x7F, 0xFF, 0xFF, 0xFF]))
    }
    #expect(HTTP2Bytes.goAways(wire.received) == [11])
    #expect(HTTP2Bytes.resets(wire.received).count == HTTP2Receiver.glitches)
  }

  @Test func `the window is opened again for what came on streams that are reset`() throws {
    let wire = try Wire(route: Self.later)
    try wire.send(HTTP2Bytes.request("/", stream: 1, isEnd: false) + http2Frame(8, stream: 1, [0, 0, 0, 0]))
    for _ in 0..<20 { try wire.send(http2Frame(0, stream: 1, [UInt8](repeating: 0, count: 16_000))) }
    #expect(HTTP2Bytes.goAways(wire.received).isEmpty)
    let opened = wire.frames.filter { $0.type == 8 && $0.stream == 0 }
    #expect(opened.reduce(0) { $0 + Int($1.payload[2]) << 8 + Int($1.payload[3]) } > 250_000)
  }

  // MARK: uploads that wait

  /// A wire whose requests with bodies are uploads that wait until they are accepted.
  private func uploads() throws -> (wire: Wire, intakes: () -> [HTTPArrivingBodyTests.Intake]) {
    final class Intakes: Sendable { let all = Mutex<[HTTPArrivingBodyTests.Intake]>([]) }
    let intakes = Intakes()
    let wire = try Wire(
      route: Self.text,
      intake: {
        let intake = HTTPArrivingBodyTests.Intake(acceptsAtOnce: false)
        intakes.all.withLock { $0.append(intake) }
        return HTTPArrivingBodyTests.Body(intake)
      })
    return (wire, { intakes.all.withLock { $0 } })
  }

  /// What the client was allowed to send on the connection.
  private func allowed(_ wire: Wire) -> Int {
    wire.frames.filter { $0.type == 8 && $0.stream == 0 }.reduce(HTTP2Receiver.window) { sum, frame in
      sum + frame.payload.reduce(0) { $0 << 8 | Int($1) }
    }
  }

  private func accept(_ intake: HTTPArrivingBodyTests.Intake) throws {
    let source = intake.state.withLock { $0.source }
    try #require(source).value.accept()
  }

  @Test func `a body that came in frames of one byte while it waited is handed in by a few parts`() throws {
    let (wire, intakes) = try uploads()
    try wire.send(HTTP2Bytes.request("/", stream: 1, isEnd: false))
    let frames = [[UInt8]](repeating: http2Frame(0, stream: 1, [7]), count: HTTP2Receiver.window / 15).flatMap { $0 }
    for _ in 0..<15 { try wire.send(frames) }
    let intake = try #require(intakes().first)
    #expect(intake.count == 0)
    try accept(intake)
    #expect(intake.bytes == [UInt8](repeating: 7, count: HTTP2Receiver.window))
    #expect(intake.state.withLock { $0.receipts } == 4)
    // What comes now is taken as it comes.
    try wire.send(http2Frame(0, stream: 1, [8]) + http2Frame(0, flags: 1, stream: 1, [9]))
    #expect(intake.bytes.suffix(2) == [8, 9] && intake.state.withLock { $0.isFinished })
    #expect(HTTP2Bytes.answered(wire.received) == [1] && HTTP2Bytes.goAways(wire.received).isEmpty)
  }

  @Test func `uploads that wait hold so many bytes of all, and the window opens when they are taken`() throws {
    let (wire, intakes) = try uploads()
    var sent = 0
    for number in 0..<100 {
      let stream = UInt32(2 * number + 1)
      try wire.send(HTTP2Bytes.request("/", stream: stream, isEnd: false))
      for _ in 0..<4 where allowed(wire) - sent >= 16_000 {
        try wire.send(http2Frame(0, stream: stream, [UInt8](repeating: 0, count: 16_000)))
        sent += 16_000
      }
    }
    #expect(sent > HTTP2Connection.heldBytes && sent <= HTTP2Connection.heldBytes + HTTP2Receiver.window)
    for intake in intakes() { try accept(intake) }
    try wire.take()
    #expect(intakes().reduce(0) { $0 + $1.count } == sent)
    #expect(allowed(wire) - sent == HTTP2Receiver.window)
    #expect(HTTP2Bytes.goAways(wire.received).isEmpty)
  }

  @Test func `the window opens when an upload that waits is reset`() throws {
    let (wire, _) = try uploads()
    var (stream, sent) = (UInt32(1), 0)
    while allowed(wire) - sent >= 16_000, stream < 199 {
      try wire.send(HTTP2Bytes.request("/", stream: stream, isEnd: false))
      try wire.send(http2Frame(0, stream: stream, [UInt8](repeating: 0, count: 16_000)))
      (stream, sent) = (stream + 2, sent + 16_000)
    }
    #expect(sent > HTTP2Connection.heldBytes && stream < 199)
    for number in stride(from: 1, to: stream, by: 2) where allowed(wire) - sent < 16_000 {
      try wire.send(http2Frame(3, stream: number, [0, 0, 0, 8]))
    }
    #expect(allowed(wire) - sent == HTTP2Receiver.window)
  }

  /// Requests without bodies are subject to no window, and their responses neither.
  @Test func `a client that asks and reads nothing is disconnected`() throws {
    let wire = try Wire(route: { _, _ in .now(HTTPResponse(status: .noContent)) })
    wire.stopReading()
    var count = 0
    while wire.channel.isActive, count < 100_000 {
      // Some at once, as in a read.
      let streams = (0..<100).map { UInt32(2 * (count + $0) + 1) }
      count += 100
      try? wire.send(streams.flatMap { HTTP2Bytes.request("/", stream: $0) })
    }
    #expect(!wire.channel.isActive)
    #expect(count < HTTP2Sender.waitingBytes / 50, "\(count) responses wait")
  }

  /// Clients of some libraries do, for each part of a body that they take.
  @Test func `a client may open its windows little by little, and then no further`() throws {
    let length = 1 << 18
    let wire = try Wire(route: { _, _ in .now(.text(String(repeating: "x", count: length), cache: .never)) })
    let opening = http2Frame(8, [0, 0, 4, 0]) + http2Frame(8, stream: 1, [0, 0, 4, 0])
    try wire.send(HTTP2Bytes.request("/", stream: 1))
    for _ in 0..<length / 1024 { try wire.send(opening) }
    #expect(wire.frames.reduce(0) { $0 + ($1.type == 0 ? $1.payload.count : 0) } == length)
    #expect(HTTP2Bytes.goAways(wire.received).isEmpty)
    for _ in 0..<1000 where wire.channel.isActive { try wire.send(opening) }
    #expect(HTTP2Bytes.goAways(wire.received) == [11])
  }

  @Test func `a client that opens its window byte by byte is ended`() throws {
    let wire = try Wire(route: { _, _ in .now(.text(String(repeating: "x", count: 10_000), cache: .never)) })
    try wire.send(http2Frame(4, [0, 4, 0, 0, 0, 1]) + HTTP2Bytes.request("/", stream: 1))
    var openings = 0
    while HTTP2Bytes.goAways(wire.received).isEmpty, openings < 5000 {
      try wire.send(http2Frame(8, stream: 1, [0, 0, 0, 1]))
      openings += 1
    }
    #expect(HTTP2Bytes.goAways(wire.received) == [11])
    #expect((HTTP2Receiver.rate..<HTTP2Receiver.rate + 10).contains(openings), "\(openings) openings")
  }

  @Test func `responses of its own that an address does not take have a bound`() throws {
    let body = ByteBuffer(repeating: 0x78, count: 1 << 20)
    let wire = try Wire(route: { _, _ in .now(HTTPResponse(body: .pieces([.bytes(body)]))) })
    try wire.send(http2Frame(4, [0, 4, 0, 0, 0, 0]))
    for number in 0..<40 { try wire.send(HTTP2Bytes.request("/", stream: UInt32(2 * number + 1))) }
    // Of 1 GiB a sixteenth is for them, and an address has half of that.
    #expect(HTTP2Bytes.answered(wire.received) == Set((0..<32).map { UInt32(2 * $0 + 1) }))
    #expect(wire.frames.count { $0.type == 1 } == 40 && HTTP2Bytes.resets(wire.received).isEmpty)
    try wire.send(http2Frame(3, stream: 1, [0, 0, 0, 8]) + HTTP2Bytes.request("/", stream: 81))
    #expect(HTTP2Bytes.answered(wire.received).contains(81))
  }

  @Test func `what a body has beyond its length is left out`() throws {
    var frames = HTTP2FrameWriter()
    let pieces: [BodyPiece] = [.bytes(ByteBuffer(bytes: [1, 1, 1])), .bytes(ByteBuffer(bytes: [2, 2, 2]))]
    try frames.data(pieces, length: 5, stream: 1)
    #expect(Array(frames.bytes.readableBytesView) == http2Frame(0, flags: 1, stream: 1, [1, 1, 1, 2, 2]))
  }

  // MARK: the end

  private func lastStreams(_ wire: Wire) -> [[UInt8]] {
    wire.frames.filter { $0.type == 7 }.map { Array($0.payload.prefix(4)) }
  }

  @Test func `a client that does not answer a goodbye opens streams for a while only`() throws {
    let wire = try Wire(route: Self.later)
    try wire.send(HTTP2Bytes.request("/", stream: 1))
    try wire.stop()
    try wire.send(HTTP2Bytes.request("/", stream: 3))
    #expect(lastStreams(wire) == [[0x7F, 0xFF, 0xFF, 0xFF]] && HTTP2Bytes.resets(wire.received).isEmpty)
    try wire.wait(.seconds(3))
    #expect(lastStreams(wire).dropFirst() == [[0, 0, 0, 3]])
    try wire.send(HTTP2Bytes.request("/", stream: 5))
    #expect(HTTP2Bytes.resets(wire.received) == [5: 7])
    try wire.send(http2Frame(3, stream: 1, [0, 0, 0, 8]) + http2Frame(3, stream: 3, [0, 0, 0, 8]))
    #expect(lastStreams(wire).count == 2)
    #expect(!wire.channel.isActive)
  }

  @Test func `the last response of a server that stops is followed by the last goodbye`() throws {
    let wire = try Wire(route: { _, loop in
      .later(loop.scheduleTask(in: .seconds(1)) { HTTPResponse(status: .noContent) }.futureResult)
    })
    try wire.send(HTTP2Bytes.request("/", stream: 1))
    try wire.stop()
    try wire.wait(.seconds(1))
    #expect(wire.frames.dropFirst(2).map(\.type) == [7, 6, 1, 7])
    #expect(lastStreams(wire).last == [0, 0, 0, 1])
    #expect(!wire.channel.isActive)
  }

  @Test func `who was told that the server is full, and stays, makes room for the next`() throws {
    var limits = HTTPLimits()
    (limits.connections, limits.refusedConnections) = (0, 2)
    let limiter = Wire.limiter(limits)
    func wire() throws -> Wire { try Wire(limits: limits, limiter: limiter, route: Self.text) }
    let (silent, told) = (try wire(), try wire())
    told.stayOpen()
    try told.send(HTTP2Bytes.request("/", stream: 1))
    #expect(HTTP2Bytes.goAways(told.received) == [0])
    #expect(told.channel.isActive)
    let next = try wire()
    for one in [silent, told] { try one.wait(.zero) }
    #expect(silent.channel.isActive && next.channel.isActive && !told.channel.isActive)
  }

  @Test func `a ping is answered with what it says`() throws {
    let wire = try Wire(route: Self.text)
    try wire.send(http2Frame(6, [UInt8](1...8)))
    #expect(wire.frames.last?.type == 6)
    #expect(wire.frames.last?.payload == [UInt8](1...8))
  }
}
