import Base
import FMP4
import Glibc
import NIOCore
import NIOPosix
import Publishing
@testable import RTMP
import Support
import Synchronization
import Testing

@Suite("The RTMP listener")
struct RTMPListenerTests {
  typealias S = RTMPScript

  /// A listener on a free port, for as long as `body` runs.
  private func listening<Result>(
    gate: RecordingGate = RecordingGate(), configuration: RTMPListener.Configuration = .init(),
    log: LogCollector = LogCollector(), host: String = "127.0.0.1",
    _ body: (RTMPListener, SocketAddress) async throws -> Result
  ) async throws -> Result {
    let listener = RTMPListener(
      gate: gate, clock: .system(), logger: log.logger, group: MultiThreadedEventLoopGroup.singleton,
      configuration: configuration)
    let address = try await listener.start(.address(try SocketAddress(ipAddress: host, port: 0)))
    do {
      let result = try await body(listener, address)
      await listener.stop()
      return result
    } catch {
      await listener.stop()
      throw error
    }
  }

  /// Polls until `condition` holds; false when it does not within `seconds`.
  private func eventually(_ seconds: Double = 10, _ condition: () -> Bool) async throws -> Bool {
    let end = ContinuousClock.now + .seconds(seconds)
    while !condition() {
      if ContinuousClock.now > end { return false }
      try await Task.sleep(for: .milliseconds(10))
    }
    return true
  }

  @Test func `connections that have not published hold no more than a sixteenth of the memory`() {
    let memory = 256 << 20
    let count = RTMPListener.Configuration.unpublished(ofMemory: memory)
    #expect(count >= 256 && count * RTMPLimits.bytesBeforePublish <= memory / 16)
    #expect(RTMPListener.Configuration.unpublished(ofMemory: 0) == 64)
  }

  @Test func aPublisherIsAdmittedHeardAndEnded() async throws {
    let gate = RecordingGate(key: "s3cret")
    let log = LogCollector()
    try await listening(gate: gate, log: log) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening("cam?key=s3cret"))
      #expect(try await eventually { client.text.contains("NetStream.Publish.Start") })
      try await client.send(S.metadata() + S.headers + S.media(milliseconds: 1000))
      #expect(try await eventually { gate.sinks.first?.samples.count ?? 0 > 60 })
      try await client.send(S.command([.string("deleteStream"), .number(0), .null, .number(1)]))
      #expect(try await eventually { gate.sinks.first?.ending == .finished })
      try await client.close()
    }
    let request = try #require(gate.sinks.first?.request)
    #expect(request.protocolName == "RTMP")
    #expect(request.remoteAddress.hasPrefix("127.0.0.1:"))
    let announcement = try #require(log.lines.first { $0.contains("publishing 640×360 H.264 25 fps, AAC 48 kHz ") })
    #expect(announcement.hasPrefix("notice: "))
    #expect(announcement.contains(" from 127.0.0.1:"))
    #expect(log.lines.contains { $0.contains("(script 1)") })
    #expect(!log.lines.joined().contains("s3cret"))
  }

  @Test func aLostSocketIsALostConnection() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.headers + S.media(milliseconds: 500))
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      try await client.close()
      #expect(
        try await eventually(5) {
          if case .connectionLost? = gate.sinks.first?.ending { return true }
          return false
        })
    }
  }

  @Test func whoSendsTooFastWaitsAndLosesNothingThoughItLeaves() async throws {
    let gate = RecordingGate()
    let log = LogCollector()
    let burst = Int(RTMPLimits.messageBurst)
    try await listening(gate: gate, log: log) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.metadata(video: false) + S.audio(S.aacHeader(), 0))
      #expect(try await eventually { gate.sinks.count == 1 })
      let sink = try #require(gate.sinks.first)
      let start = ContinuousClock.now
      // Each when the one before has ended.
      let audio = (0..<burst + 4000).map { S.audio(S.aacFrame, UInt32($0) * 64 / 3) }
      try await client.send(Array(audio[..<(burst + 2000)].joined()))
      #expect(try await eventually(30) { sink.samples.count == burst + 2000 })
      #expect(ContinuousClock.now - start > .seconds(0.9))
      #expect(!client.isClosed)
      try await client.send(
        Array(audio[(burst + 2000)...].joined()) + S.command([.string("deleteStream"), .number(0), .null, .number(1)]))
      try await client.close()
      #expect(try await eventually(30) { sink.ending != nil })
      #expect(sink.ending == .finished)
      #expect(sink.samples.count == burst + 4000)
    }
    #expect(log.lines.contains { $0.hasPrefix("notice: cam: ended: the publisher ended the stream") })
  }

  @Test func aWrongKeyIsHeardAtOnceAndNeverLogged() async throws {
    let gate = RecordingGate(key: "right")
    let log = LogCollector()
    try await listening(gate: gate, log: log) { _, address in
      let client = try await Client.connect(to: address)
      let start = ContinuousClock.now
      try await client.send(S.opening("cam?key=canary42") + S.headers + S.media(milliseconds: 4000))
      #expect(try await eventually { client.text.contains("the publish key is missing or wrong") })
      #expect(ContinuousClock.now - start < .seconds(5))
      #expect(client.text.contains("NetStream.Publish.BadName"))
      #expect(try await eventually(4) { client.isClosed })
      #expect(!client.wasReset)
    }
    #expect(gate.sinks.isEmpty)
    #expect(log.lines.contains { $0.hasPrefix("warning: cam: refused: ") })
    #expect(!log.lines.joined().contains("canary42"))
  }

  @Test func anUnknownCodecIsHeardWhileThePublisherSendsOn() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.metadata() + S.video([0x90] + Array("vp08".utf8) + [1], 0))
      // Unread bytes at the close would reset the connection and take the answer away.
      for _ in 0..<20 { try? await client.send(S.media(milliseconds: 1000)) }
      #expect(try await eventually(5) { client.text.contains("codec vp08 unsupported") })
    }
    let reason =
      "codec vp08 unsupported; supported: H.264, HEVC, AV1, VP9, AAC, Opus, AC-3, E-AC-3, MPEG audio, G.711 A-law, G.711 µ-law"
    #expect(gate.sinks.first?.ending == .failed(reason))
  }

  @Test func aPublisherThatFallsSilentIsLost() async throws {
    var configuration = RTMPListener.Configuration()
    configuration.idleTimeout = 300_000_000
    let gate = RecordingGate()
    try await listening(gate: gate, configuration: configuration) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.headers + S.media(milliseconds: 500))
      #expect(try await eventually { gate.sinks.first?.ending != nil })
      #expect(try await eventually { client.isClosed })
    }
    guard case .connectionLost(let why)? = gate.sinks.first?.ending else {
      Issue.record("not lost")
      return
    }
    #expect(why.hasPrefix("no byte for"))
  }

  @Test func aConnectionThatStallsBeforePublishingIsClosedInTime() async throws {
    var configuration = RTMPListener.Configuration()
    configuration.publishDeadline = 300_000_000
    try await listening(configuration: configuration) { _, address in
      for count in [0, 1, 1000, 1537, 3000] {
        let client = try await Client.connect(to: address)
        // On a busy machine it may be closed by then.
        try? await client.send(Array((S.handshake + S.connect()).prefix(count)))
        #expect(try await eventually(5) { client.isClosed })
      }
    }
  }

  @Test func aSinkThatClosesEndsThePublisher() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.headers + S.media(milliseconds: 200))
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      gate.sinks.first?.close(.replaced)
      try await client.send(S.media(from: 200, milliseconds: 200))
      #expect(try await eventually { client.text.contains("another publisher took the name over") })
      #expect(try await eventually(4) { client.isClosed })
    }
    #expect(gate.sinks.first?.ending == nil)
  }

  @Test func anEvictedPublisherHearsWhyAndIsNotHeardAnyMore() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.headers + S.media(milliseconds: 200))
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      let sink = try #require(gate.sinks.first)
      sink.request.onEviction(.replaced)
      #expect(try await eventually { client.text.contains("another publisher took the name over") })
      let count = sink.recorded.count
      try? await client.send(S.media(from: 200, milliseconds: 1000))
      try await Task.sleep(for: .milliseconds(100))
      #expect(sink.recorded.count == count)
    }
  }

  @Test func stoppingEndsEveryPublicationAndTellsThePublisher() async throws {
    let gate = RecordingGate()
    let (text, time) = try await listening(gate: gate) { listener, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening() + S.headers + S.media(milliseconds: 200))
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      let start = ContinuousClock.now
      await listener.stop()
      return (client.text, ContinuousClock.now - start)
    }
    #expect(gate.sinks.first?.ending == .shutdown)
    #expect(text.contains("the server is shutting down"))
    #expect(time < .seconds(5))
  }

  @Test func failuresOfAnAddressMakeItsPublishersWaitAndNoneIsRefused() async throws {
    var configuration = RTMPListener.Configuration()
    configuration.peerLimits.failureBurst = 5
    configuration.peerLimits.failuresPerSecond = 0.01
    let log = LogCollector()
    let gate = RecordingGate()
    try await listening(gate: gate, configuration: configuration, log: log) { _, address in
      for _ in 0..<8 {
        let client = try await Client.connect(to: address)
        try? await client.send(Array("GET / HTTP/1.0\r\n\r\n".utf8))
        #expect(try await eventually { client.isClosed })
      }
      let start = ContinuousClock.now
      for name in ["cam", "other"] {
        let client = try await Client.connect(to: address)
        try await client.send(S.opening(name))
        #expect(try await eventually { gate.sinks.count == (name == "cam" ? 1 : 2) })
        try await client.close()
      }
      #expect(ContinuousClock.now - start > .seconds(3.5))
      #expect(log.lines.count { $0.contains("too many failed attempts") } == 1)
    }
  }

  @Test func connectionsThatSendNothingTakeNoPlaceOfOthers() async throws {
    var configuration = RTMPListener.Configuration()
    configuration.peerLimits.failureBurst = 5
    configuration.peerLimits.unauthenticatedPerAddress = 20
    configuration.handshakeDeadline = 300_000_000
    let gate = RecordingGate()
    try await listening(gate: gate, configuration: configuration) { _, address in
      var silent: [Client] = []
      for _ in 0..<20 { silent.append(try await Client.connect(to: address)) }
      #expect(try await eventually { silent.allSatisfy(\.isClosed) })
      for _ in 0..<50 { try await Client.connect(to: address).close() }
      let start = ContinuousClock.now
      let client = try await Client.connect(to: address)
      try await client.send(S.opening())
      #expect(try await eventually { gate.sinks.count == 1 })
      #expect(ContinuousClock.now - start < .seconds(1.5), "none of them was a failure")
      try await client.close()
    }
  }

  @Test(arguments: [1, 2]) func aTrustedProxySaysWhoseConnectionItIs(_ version: Int) async throws {
    var configuration = RTMPListener.Configuration()
    configuration.proxies = TrustedProxies([try #require(AddressRange(parsing: "127.0.0.0/8"))])
    let gate = RecordingGate()
    try await listening(gate: gate, configuration: configuration) { _, address in
      let line = Array("PROXY TCP4 192.0.2.7 192.0.2.1 4711 1935\r\n".utf8)
      let binary: [UInt8] =
        [0x0D, 0x0A, 0x0D, 0x0A, 0, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0, 12]
        + [192, 0, 2, 7, 192, 0, 2, 1, 0x12, 0x67, 0x07, 0x8F]
      let client = try await Client.connect(to: address)
      for byte in version == 1 ? line : binary { try await client.send([byte]) }
      try await client.send(S.opening())
      #expect(try await eventually { gate.sinks.count == 1 })
      try await client.close()
      // The proxy's own, as when it looks whether the server is there.
      let own = try await Client.connect(to: address)
      try await own.send(S.opening("own"))
      #expect(try await eventually { gate.sinks.count == 2 })
      try await own.close()
      let wrong = try await Client.connect(to: address)
      try await wrong.send(Array("PROXY TCP4 nobody\r\n".utf8))
      #expect(try await eventually { wrong.isClosed })
    }
    #expect(gate.sinks.first?.request.remoteAddress == "192.0.2.7:4711")
    #expect(gate.sinks.first?.request.host == "192.0.2.7")
    #expect(gate.sinks.last?.request.remoteAddress.hasPrefix("127.0.0.1:") == true)
  }

  @Test func onlyATrustedProxyMayNameAnotherAddress() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let client = try await Client.connect(to: address)
      try? await client.send(Array("PROXY TCP4 192.0.2.7 192.0.2.1 4711 1935\r\n".utf8))
      try? await client.send(S.opening())
      #expect(try await eventually { client.isClosed })
    }
    #expect(gate.sinks.isEmpty)
  }

  @Test func publishersFromOneAddressAreNotCountedAsUnauthenticated() async throws {
    var configuration = RTMPListener.Configuration()
    configuration.peerLimits.unauthenticatedPerAddress = 2
    configuration.peerLimits.failureBurst = 3
    let gate = RecordingGate()
    try await listening(gate: gate, configuration: configuration) { _, address in
      var clients: [Client] = []
      for index in 0..<10 {
        let client = try await Client.connect(to: address)
        try await client.send(S.opening("cam\(index)"))
        #expect(try await eventually { gate.sinks.count == index + 1 })
        clients.append(client)
      }
      for client in clients { try await client.close() }
    }
  }

  @Test func theListenerSpeaksIPv6() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate, host: "::1") { _, address in
      let client = try await Client.connect(to: address)
      try await client.send(S.opening())
      #expect(try await eventually { gate.sinks.count == 1 })
      try await client.close()
    }
    #expect(gate.sinks.first?.request.remoteAddress.hasPrefix("[::1]:") == true)
  }

  @Test(.enabled(if: access("/usr/bin/ffmpeg", X_OK) == 0))
  func ffmpegPublishesWithReorderedFrames() async throws {
    let gate = RecordingGate()
    try await listening(gate: gate) { _, address in
      let port = try #require(address.port)
      let status = try await run([
        "/usr/bin/ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=s=320x180:r=30000/1001", "-f", "lavfi", "-i",
        "sine=440:r=44100", "-t", "3", "-c:v", "libx264", "-preset", "ultrafast", "-bf", "3", "-x264-params",
        "b-adapt=0", "-g", "30", "-pix_fmt", "yuv420p", "-c:a", "aac", "-f", "flv",
        "rtmp://127.0.0.1:\(port)/live/cam",
      ])
      #expect(status == 0)
      #expect(try await eventually { gate.sinks.first?.ending != nil })
    }
    let sink = try #require(gate.sinks.first)
    #expect(sink.ending == .finished)
    let frames = sink.samples.filter { $0.track == .video }
    #expect(frames.map(\.decodeTime) == (0..<Int64(frames.count)).map { $0 * 1001 })
    #expect(frames.count == 90)
    // In order of presentation the frames follow each other without jitter.
    let shown = frames.map { $0.decodeTime + Int64($0.compositionOffset) }.sorted()
    #expect(zip(shown, shown.dropFirst()).allSatisfy { $1 - $0 == 1001 })
    #expect(frames.contains { $0.compositionOffset > 1001 })
    let audio = sink.samples.filter { $0.track == .audio }.map(\.decodeTime)
    #expect(zip(audio, audio.dropFirst()).allSatisfy { $1 - $0 == 1024 })
    #expect(audio.count >= 129)
  }

  /// Runs a program without blocking a thread; its exit status.
  private func run(_ arguments: [String]) async throws -> Int32 {
    var pointers: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    pointers.append(nil)
    defer { for pointer in pointers { free(pointer) } }
    var pid: pid_t = 0
    let error = posix_spawn(&pid, arguments[0], nil, nil, pointers, environ)
    guard error == 0 else { return error }
    while true {
      var status: Int32 = 0
      let done = waitpid(pid, &status, WNOHANG)
      if done != 0 { return done < 0 ? -1 : status >> 8 }
      try await Task.sleep(for: .milliseconds(20))
    }
  }
}

/// A peer that says what it is told to say, and keeps what it hears.
final class Client: Sendable {
  private struct State {
    var bytes: [UInt8] = []
    var isClosed = false
    var wasReset = false
  }

  private final class Reader: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    let client: Client

    init(_ client: Client) {
      self.client = client
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      let bytes = Array(unwrapInboundIn(data).readableBytesView)
      client.state.withLock { $0.bytes += bytes }
    }

    func channelInactive(context: ChannelHandlerContext) {
      client.state.withLock { $0.isClosed = true }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      client.state.withLock { $0.wasReset = true }
      context.close(promise: nil)
    }
  }

  private let state = Mutex(State())
  private let channel = Mutex<(any Channel)?>(nil)

  static func connect(to address: SocketAddress) async throws -> Client {
    let client = Client()
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Reader(client))
        }
      }
      .connect(to: address).get()
    client.channel.withLock { $0 = channel }
    return client
  }

  func send(_ bytes: [UInt8]) async throws {
    guard let channel = channel.withLock({ $0 }) else { return }
    try await channel.writeAndFlush(ByteBuffer(bytes: bytes))
  }

  func close() async throws {
    guard let channel = channel.withLock({ $0 }) else { return }
    try await channel.close()
  }

  /// All that was heard, with what is not text as dots.
  var text: String {
    String(decoding: state.withLock { $0.bytes }.map { (0x20...0x7E).contains($0) ? $0 : 0x2E }, as: UTF8.self)
  }

  var isClosed: Bool { state.withLock { $0.isClosed } }
  var wasReset: Bool { state.withLock { $0.wasReset } }
}
