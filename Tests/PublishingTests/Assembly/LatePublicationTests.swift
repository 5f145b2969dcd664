import Base
import FMP4
import NIOCore
import NIOPosix
@testable import Publishing
import Support
import Synchronization
import Testing

/// A publication that is asked for when its media comes. All of it is done on one event loop.
@Suite("A publication that begins with its media", .timeLimit(.minutes(1)))
struct LatePublicationTests {
  /// Answers when it is told to.
  private final class SlowGate: PublishGate {
    let gate: RecordingGate
    private let isOpen = Mutex(false)
    let noted = Mutex<[RefusedPublication]>([])

    init(refusal: PublishRefusal? = nil, isOpen: Bool = true) {
      gate = RecordingGate(refusal: refusal)
      self.isOpen.withLock { $0 = isOpen }
    }

    func open() { isOpen.withLock { $0 = true } }

    func admit(_ request: PublishRequest) async throws(PublishRefusal) -> any MediaSink {
      for _ in 0..<1000 where !isOpen.withLock({ $0 }) { try? await Task.sleep(for: .milliseconds(5)) }
      return try await gate.admit(request)
    }

    func note(_ refused: RefusedPublication) { noted.withLock { $0.append(refused) } }
  }

  /// The publication with the reasons that it gave, on its loop.
  private struct Running: Sendable {
    let bound: NIOLoopBound<LatePublication>
    let loop: any EventLoop
    let closed: Closed

    func run<Value: Sendable>(_ body: @escaping @Sendable (LatePublication) -> Value) async throws -> Value {
      try await loop.submit { [bound] in body(bound.value) }.get()
    }

    func perform(_ actions: [PublicationAction]) async throws {
      for action in actions { try await run { $0.perform(action, encoder: "e") } }
    }
  }

  private final class Closed: Sendable {
    private let state = Mutex<[String]>([])
    var reasons: [String] { state.withLock { $0 } }
    func add(_ reason: String) { state.withLock { $0.append(reason) } }
  }

  private func make(_ gate: SlowGate) async throws -> Running {
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let name = try #require(StreamName("cam-7"))
    let closed = Closed()
    let bound = try await loop.submit {
      let publisher = Publisher(
        protocolName: "SRT", remoteAddress: "192.0.2.7:4711", host: "192.0.2.7", gate: gate, logger: .silent)
      let publication = LatePublication(
        name, of: publisher, key: Secret("k"), software: "s", origin: .peer, clock: .system(), loop: loop)
      publication.closed = { closed.add($0) }
      return NIOLoopBound(publication, eventLoop: loop)
    }.get()
    return Running(bound: bound, loop: loop, closed: closed)
  }

  private func eventually(_ condition: () async throws -> Bool) async throws -> Bool {
    for _ in 0..<1000 where try await !condition() { try await Task.sleep(for: .milliseconds(5)) }
    return try await condition()
  }

  private static let captions: CaptionServices = {
    var services = CaptionServices()
    services.insert(.channel(1))
    return services
  }()

  private static let clock = PublicationAction.event(
    .clock(WallClockAnchor(mediaTime: .zero, wallTime: WallTime(nanoseconds: 0))))

  @Test func `Without media nobody is asked; warnings wait for it, in order with what comes meanwhile`() async throws {
    let gate = SlowGate(isOpen: false)
    let running = try await make(gate)
    try await running.perform([
      .warn(.fallsBehind), .lost(.video), .inBand(.early(.audio)), .inBand(.captions(.video, Self.captions)),
    ])
    #expect(gate.gate.sinks.isEmpty)
    try await running.perform([Self.clock, .event(.discontinuity), .warn(.runsAhead), .withdraw(.fallsBehind)])
    #expect(try await running.run { $0.sink == nil })
    gate.open()
    #expect(try await eventually { gate.gate.sinks.first?.recorded.count == 2 })
    let sink = try #require(gate.gate.sinks.first)
    #expect(sink.warnings == [.runsAhead] && running.closed.reasons.isEmpty)
    #expect(sink.early == [.audio])
    #expect(sink.request.key?.matches(Secret("k")) == true && sink.request.stream == StreamName("cam-7"))
    try await running.run { $0.end(.finished) }
    #expect(sink.ending == .finished)
    try await running.perform([.event(.discontinuity)])
    #expect(sink.recorded.count == 3)
  }

  @Test func `A refusal, a closing sink and an eviction are told once`() async throws {
    let refused = try await make(SlowGate(refusal: .shuttingDown))
    try await refused.perform([Self.clock])
    #expect(try await eventually { !refused.closed.reasons.isEmpty })
    #expect(refused.closed.reasons == ["refused: the server is shutting down"])

    let gate = SlowGate()
    let closing = try await make(gate)
    try await closing.perform([Self.clock])
    #expect(try await eventually { gate.gate.sinks.first?.recorded.isEmpty == false })
    gate.gate.sinks.first?.close(.replaced)
    try await closing.perform([.event(.discontinuity), .event(.discontinuity)])
    #expect(closing.closed.reasons == [EndReason.replaced.text])
    gate.gate.sinks.first?.request.onEviction(.shutdown)
    #expect(try await closing.run { $0.isOver } && closing.closed.reasons.count == 1)

    let other = SlowGate()
    let evicted = try await make(other)
    try await evicted.perform([Self.clock])
    #expect(try await eventually { other.gate.sinks.first?.recorded.isEmpty == false })
    other.gate.sinks.first?.request.onEviction(.replaced)
    #expect(try await eventually { evicted.closed.reasons == [EndReason.replaced.text] })
  }

  @Test func `Media that cannot be used ends it, or is noted where nobody was asked`() async throws {
    let gate = SlowGate()
    let early = try await make(gate)
    try await early.run { $0.fail("no such codec") }
    #expect(gate.noted.withLock { $0.map(\.reason) } == ["no such codec"] && early.closed.reasons.isEmpty)

    let running = try await make(gate)
    try await running.perform([Self.clock])
    #expect(try await eventually { gate.gate.sinks.first?.recorded.isEmpty == false })
    try await running.run { $0.fail("broken") }
    #expect(gate.gate.sinks.first?.ending == .failed("broken") && running.closed.reasons.isEmpty)
  }

  @Test func `One that leaves while it is admitted ends at once`() async throws {
    let gate = SlowGate(isOpen: false)
    let running = try await make(gate)
    try await running.perform([Self.clock])
    try await running.run { $0.end(.connectionLost("reset")) }
    gate.open()
    #expect(try await eventually { gate.gate.sinks.first?.ending != nil })
    #expect(gate.gate.sinks.first?.recorded.count == 1)
  }

  @Test func `What waits for the gate is bounded`() async throws {
    let gate = SlowGate(isOpen: false)
    let running = try await make(gate)
    let sample = Sample(
      track: .audio, decodeTime: 0, compositionOffset: 0, duration: 1, isSync: true, isDisposable: false,
      payload: ByteBuffer(repeating: 0, count: 1 << 20))
    try await running.perform([Self.clock])
    for _ in 0..<PublicationLimits.heldBytes >> 20 { try await running.perform([.event(.sample(sample))]) }
    #expect(running.closed.reasons.isEmpty)
    try await running.perform([.event(.sample(sample))])
    #expect(running.closed.reasons == ["the server took too long to admit it"])
    gate.open()
  }
}
