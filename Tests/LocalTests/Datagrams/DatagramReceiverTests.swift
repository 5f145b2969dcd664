import Base
import FMP4
import IngestSupport
@testable import Local
import NIOCore
import NIOEmbedded
import NIOPosix
import Publishing
import Support
import Synchronization
import Testing

/// Whose datagrams are taken, and for how long. Time passes as the tests say.
@Suite(.timeLimit(.minutes(1))) struct DatagramReceiverTests {
  private final class Clock: Sendable {
    private let now = Mutex<MonotonicTime>(1_000_000_000)
    var clock: SteadyClock {
      SteadyClock(ClockReading(wall: 1_795_245_850_000_000_000, monotonic: 0)) { self.now.withLock { $0 } }
    }
    func advance(_ nanoseconds: Int64) { now.withLock { $0 += nanoseconds } }
  }

  /// Counts who asks, and refuses.
  private final class Refusing: PublishGate {
    private let count = Mutex(0)
    var asked: Int { count.withLock { $0 } }
    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      count.withLock { $0 += 1 }
      throw .shuttingDown
    }
  }

  /// Counts what is held, and says that 128 KiB are too much.
  private final class Counting: PublishGate, HeldBytes {
    private let state = Mutex<(told: [Int], end: (@Sendable (String) -> Void)?)>(([], nil))
    let mostAtStart = 1 << 20
    var told: [Int] { state.withLock { $0.told } }

    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink { throw .shuttingDown }

    func account(of stream: StreamName, end: @escaping @Sendable (_ reason: String) -> Void) -> (any HeldBytes)? {
      state.withLock { $0.end = end }
      return self
    }

    func hold(_ bytes: Int) {
      let end = state.withLock { state -> (@Sendable (String) -> Void)? in
        state.told.append(bytes)
        return bytes > 128 << 10 ? state.end.take() : nil
      }
      end?("too much is held")
    }
  }

  private struct Setup {
    let clock: Clock
    let figures: ReceptionFigures
    let channel: NIOAsyncTestingChannel

    var status: ReceptionStatus { figures.status }

    func send(_ bytes: ByteBuffer, from port: Int) async throws {
      let sender = try SocketAddress(ipAddress: "127.0.0.1", port: port)
      try await channel.writeInbound(AddressedEnvelope(remoteAddress: sender, data: bytes))
    }

    /// Time passes for the clock and for the loop's timers, which are never late.
    func pass(_ nanoseconds: Int64) async {
      for start in stride(from: 0, to: nanoseconds, by: Int(DatagramLimits.check)) {
        let step = min(DatagramLimits.check, nanoseconds - start)
        clock.advance(step)
        await channel.testingEventLoop.advanceTime(by: .nanoseconds(step))
      }
    }

    func until(_ condition: (ReceptionStatus) -> Bool) async throws -> Bool {
      for _ in 0..<1000 where !condition(status) {
        await channel.testingEventLoop.run()
        try await Task.sleep(for: .milliseconds(5))
      }
      return condition(status)
    }
  }

  private func receiving(
    _ gate: any PublishGate = RecordingGate(), from sender: String? = nil, _ body: (Setup) async throws -> Void
  ) async throws {
    let (clock, figures, channel) = (Clock(), ReceptionFigures(), NIOAsyncTestingChannel())
    let name = try #require(StreamName("field"))
    let place = DatagramPlace(
      address: try SocketAddress(ipAddress: "127.0.0.1", port: 5000),
      sender: try sender.map { try SocketAddress(ipAddress: $0, port: 0) })
    try await channel.testingEventLoop.executeInContext {
      let receiver = DatagramReceiver(
        name, place, gate: gate, clock: clock.clock, logger: .silent, figures: figures
      ) { .finished }
      try channel.pipeline.syncOperations.addHandler(receiver)
    }
    try await body(Setup(clock: clock, figures: figures, channel: channel))
    // It reads what lies in its socket first, for some milliseconds.
    channel.close(promise: nil)
    for _ in 0..<5 { await channel.testingEventLoop.advanceTime(by: .milliseconds(10)) }
  }

  private static let media = TransportScript.datagrams()

  @Test func `Another sender is taken once the first has been silent for a second`() async throws {
    try await receiving { setup in
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.state == .receiving && setup.status.sender == "127.0.0.1:4001")
      await setup.pass(DatagramLimits.handover - 1)
      try await setup.send(Self.media[0], from: 4002)
      #expect(setup.status.sender == "127.0.0.1:4001" && setup.status.unfollowed == 1)
      await setup.pass(1)
      try await setup.send(Self.media[0], from: 4002)
      #expect(setup.status.sender == "127.0.0.1:4002" && setup.status.unfollowed == 1)
      // Now the first one is the other.
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.sender == "127.0.0.1:4002" && setup.status.unfollowed == 2)
      #expect(setup.status.datagrams == 2)
    }
  }

  /// What both sent during the halt is read afterwards, in whatever order.
  @Test func `While the server stands still nobody is silent`() async throws {
    try await receiving { setup in
      try await setup.send(Self.media[0], from: 4001)
      setup.clock.advance(2 * DatagramLimits.silence)
      try await setup.send(Self.media[0], from: 4002)
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.sender == "127.0.0.1:4001" && setup.status.unfollowed == 1)
      await setup.pass(DatagramLimits.handover)
      try await setup.send(Self.media[0], from: 4002)
      #expect(setup.status.sender == "127.0.0.1:4002" && setup.status.unfollowed == 1)
    }
  }

  @Test func `What is held before anybody admits it is counted`() async throws {
    var script = TransportScript()
    script.add(table: 0, TransportScript.association([(1, pid: 4096)]))
    script.add(table: 4096, TransportScript.map(1, [(type: 0x1B, pid: 256, more: [])]))
    // A frame without an end.
    let begin: [UInt8] = [0, 0, 1, 9, 0xF0, 0, 0, 1, 0x65]
    script.add(256, TransportScript.pes(0xE0, 90_000, length: 0, begin + [UInt8](repeating: 0x11, count: 400_000)))
    let gate = Counting()
    try await receiving(gate) { setup in
      for start in stride(from: 0, to: script.bytes.count, by: 7 * 188) {
        let end = min(start + 7 * 188, script.bytes.count)
        try await setup.send(ByteBuffer(bytes: script.bytes[start..<end]), from: 4001)
      }
      #expect(try await setup.until { $0.state == .paused("too much is held") })
    }
    #expect(gate.told.contains { $0 > 128 << 10 }, "\(gate.told)")
  }

  @Test func `A sender is silent for five seconds at most`() async throws {
    try await receiving { setup in
      try await setup.send(Self.media[0], from: 4001)
      await setup.pass(DatagramLimits.silence - DatagramLimits.check)
      #expect(setup.status.state == .receiving)
      await setup.pass(DatagramLimits.check)
      #expect(setup.status.state == .waiting && setup.status.sender == "127.0.0.1:4001")
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.state == .receiving, "it may come back")
    }
  }

  @Test func `What holds no transport stream is counted, and follows nobody`() async throws {
    try await receiving { setup in
      var cut = Self.media[0]
      cut.moveWriterIndex(to: cut.writerIndex - 1)
      for bytes in [ByteBuffer(), ByteBuffer(bytes: [1, 2, 3]), cut] { try await setup.send(bytes, from: 4001) }
      #expect(setup.status.foreign == 3 && setup.status.sender == nil && setup.status.state == .waiting)
    }
  }

  @Test func `Of a place with a sender nobody else is taken, from whatever port`() async throws {
    try await receiving(from: "127.0.0.9") { setup in
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.unfollowed == 1 && setup.status.sender == nil)
    }
    try await receiving(from: "127.0.0.1") { setup in
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.unfollowed == 0 && setup.status.sender == "127.0.0.1:4001")
    }
  }

  @Test func `After a refusal nothing is taken for five seconds, of nobody`() async throws {
    let gate = Refusing()
    try await receiving(gate) { setup in
      for datagram in Self.media { try await setup.send(datagram, from: 4001) }
      #expect(try await setup.until { if case .paused = $0.state { true } else { false } })
      let before = setup.status.datagrams
      setup.clock.advance(DatagramLimits.pause - 1)
      for port in [4001, 4002] { try await setup.send(Self.media[0], from: port) }
      #expect(setup.status.datagrams == before && gate.asked == 1)
      setup.clock.advance(1)
      try await setup.send(Self.media[0], from: 4002)
      #expect(setup.status.datagrams == before + 1 && setup.status.sender == "127.0.0.1:4002")
    }
  }

  @Test func `A sender without a programme is passed over for half a minute, others are not`() async throws {
    try await receiving { setup in
      let bare = TransportScript.datagrams(frames: 7, isMapped: false)[0]
      for _ in 0..<30 where setup.status.sender == nil || setup.status.state == .receiving {
        try await setup.send(bare, from: 4001)
        await setup.pass(1_000_000_000)
      }
      #expect(setup.status.state == .waiting && setup.status.unfollowed == 0)
      setup.clock.advance(DatagramLimits.shunning - 1)
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.unfollowed == 1 && setup.status.state == .waiting)
      try await setup.send(Self.media[0], from: 4002)
      #expect(setup.status.state == .receiving && setup.status.sender == "127.0.0.1:4002")
      // The other one ends; now it is a minute ago.
      await setup.pass(DatagramLimits.shunning)
      #expect(setup.status.state == .waiting)
      try await setup.send(Self.media[0], from: 4001)
      #expect(setup.status.sender == "127.0.0.1:4001" && setup.status.unfollowed == 1)
    }
  }

  // MARK: groups

  @Test func `An interface that is not there is named`() async throws {
    let channel = try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .bind(host: "127.0.0.1", port: 0).get()
    let place = DatagramPlace(
      address: try SocketAddress(ipAddress: "239.255.1.2", port: 5000), interface: "weir-none0")
    do {
      try await channel.join(place).get()
      Issue.record("it was joined")
    } catch {
      #expect((error as? InterfaceError)?.name == "weir-none0" && "\(error)".contains("weir-none0"))
    }
    try await channel.close()
  }
}
