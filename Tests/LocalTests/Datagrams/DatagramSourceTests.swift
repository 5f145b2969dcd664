import Base
import FMP4
import Glibc
import IngestSupport
@testable import Local
import NIOCore
import NIOPosix
import Publishing
import Support
import Testing

@Suite("Transport streams by UDP")
struct DatagramSourceTests {

  private struct Running {
    let source: DatagramSource
    let address: SocketAddress
    let log: LogCollector
  }

  private func receiving(
    _ gate: RecordingGate, from sender: String? = nil,
    on group: MultiThreadedEventLoopGroup = MultiThreadedEventLoopGroup.singleton,
    _ body: (Running) async throws -> Void
  ) async throws -> EndReason {
    let log = LogCollector()
    let place = DatagramPlace(
      address: try SocketAddress(ipAddress: "127.0.0.1", port: 0),
      sender: try sender.map { try SocketAddress(ipAddress: $0, port: 0) })
    let source = DatagramSource(
      name: try #require(StreamName("field")), place: place, gate: gate, clock: .system(), logger: log.logger,
      group: group)
    async let ending = source.run()
    defer { source.stop(.shutdown) }
    _ = try await eventually { source.localAddress != nil }
    try await body(Running(source: source, address: try #require(source.localAddress), log: log))
    source.stop(.finished)
    return await ending
  }

  private func eventually(_ condition: () -> Bool) async throws -> Bool {
    for _ in 0..<1000 where !condition() { try await Task.sleep(for: .milliseconds(10)) }
    return condition()
  }

  private func socket(_ host: String = "127.0.0.1") async throws -> any Channel {
    try await DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: host, port: 0).get()
  }

  private func send(_ datagrams: [ByteBuffer], by socket: any Channel, to address: SocketAddress) async throws {
    for bytes in datagrams {
      try await socket.writeAndFlush(AddressedEnvelope(remoteAddress: address, data: bytes)).get()
    }
  }

  @Test func `What lies in the socket at a stop is taken`() async throws {
    let (gate, group) = (RecordingGate(), MultiThreadedEventLoopGroup(numberOfThreads: 1))
    _ = try await receiving(gate, on: group) { running in
      let sender = try await socket()
      let datagrams = TransportScript.datagrams(frames: 400)
      try await send(Array(datagrams.prefix(4)), by: sender, to: running.address)
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      // The loop is busy while the rest comes, and is then told to stop first of all.
      let rest = Array(datagrams.dropFirst(4))
      group.next().execute { usleep(300_000) }
      try await send(rest, by: sender, to: running.address)
      try await sender.close()
    }
    #expect(gate.sinks.first?.samples.count == 400)
    try await group.shutdownGracefully()
  }

  @Test func `A sender's media is published, and other datagrams are counted`() async throws {
    let gate = RecordingGate()
    let ending = try await receiving(gate) { running in
      let (sender, other) = (try await socket(), try await socket())
      let datagrams = TransportScript.datagrams()
      try await send([datagrams[0]], by: sender, to: running.address)
      #expect(try await eventually { running.source.reception?.datagrams == 1 })
      try await send([ByteBuffer(bytes: [1, 2, 3]), datagrams[0]], by: other, to: running.address)
      try await send(Array(datagrams.dropFirst()), by: sender, to: running.address)
      #expect(try await eventually { gate.sinks.first?.samples.count ?? 0 >= 99 })
      let status = try #require(running.source.reception)
      #expect(status.state == .receiving && status.foreign == 1 && status.unfollowed == 1)
      #expect(status.datagrams == Int64(datagrams.count))
      try await sender.close()
      try await other.close()
    }
    #expect(ending == .finished)
    let sink = try #require(gate.sinks.first)
    #expect(gate.sinks.count == 1 && sink.ending == .finished)
    #expect(sink.request.protocolName == "udp" && sink.request.origin == .server && sink.request.key == nil)
    #expect(Set(zip(sink.samples, sink.samples.dropFirst()).map { $1.decodeTime - $0.decodeTime }) == [1024])
  }

  /// Audio of two programmes: of the second each frame has other bytes, and comes ten milliseconds later.
  private static var twoProgrammes: [ByteBuffer] {
    var script = TransportScript()
    for frame in 0..<100 {
      if frame % 20 == 0 {
        script.add(table: 0, TransportScript.association([(1, pid: 4096), (2, pid: 4097)]))
        script.add(table: 4096, TransportScript.map(1, [(type: 0x0F, pid: 256, more: [])]))
        script.add(table: 4097, TransportScript.map(2, [(type: 0x0F, pid: 257, more: [])]))
      }
      let time = UInt64(90_000 + frame * 1920)
      script.add(256, TransportScript.pes(0xC0, time, TransportScript.adts([UInt8](repeating: 33, count: 50))))
      script.add(257, TransportScript.pes(0xC0, time + 900, TransportScript.adts([UInt8](repeating: 34, count: 60))))
    }
    return stride(from: 0, to: script.bytes.count, by: 7 * 188).map {
      ByteBuffer(bytes: script.bytes[$0..<min($0 + 7 * 188, script.bytes.count)])
    }
  }

  @Test func `Sources of one address take a programme each, and the last one closes its socket`() async throws {
    let sockets = DatagramSockets()
    // A port that is free now.
    let probe = try await socket()
    let address = try #require(probe.localAddress)
    try await probe.close()
    let gates = (RecordingGate(), RecordingGate())
    func source(_ name: String, _ program: UInt16, _ gate: RecordingGate) throws -> DatagramSource {
      DatagramSource(
        name: try #require(StreamName(name)), place: DatagramPlace(address: address, program: program), gate: gate,
        clock: .system(), logger: LogCollector().logger, group: MultiThreadedEventLoopGroup.singleton, sockets: sockets)
    }
    let (first, second) = (try source("first", 1, gates.0), try source("second", 2, gates.1))
    async let firstEnding = first.run()
    async let secondEnding = second.run()
    #expect(try await eventually { first.localAddress == address && second.localAddress == address })
    let sender = try await socket()
    try await send(Self.twoProgrammes, by: sender, to: address)
    #expect(
      try await eventually {
        gates.0.sinks.first?.samples.count ?? 0 >= 99 && gates.1.sinks.first?.samples.count ?? 0 >= 99
      })
    #expect(gates.0.sinks.first?.samples.first?.payload.readableBytes == 50)
    #expect(gates.1.sinks.first?.samples.first?.payload.readableBytes == 60)
    // The one that is left goes on.
    first.stop(.finished)
    #expect(try await eventually { gates.0.sinks.first?.ending != nil })
    let before = try #require(second.reception?.datagrams)
    try await send(Self.twoProgrammes, by: sender, to: address)
    #expect(try await eventually { (second.reception?.datagrams ?? 0) > before })
    #expect(first.reception?.datagrams == before)
    let bootstrap = DatagramBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    await #expect(throws: (any Error).self) { _ = try await bootstrap.bind(to: address).get() }
    second.stop(.finished)
    // One that comes while the socket is being closed waits for its address.
    let third = try source("third", 1, RecordingGate())
    async let thirdEnding = third.run()
    #expect(try await eventually { third.localAddress == address })
    third.stop(.finished)
    let endings = await (firstEnding, secondEnding, thirdEnding)
    #expect(endings == (.finished, .finished, .finished))
    let again = try await bootstrap.bind(to: address).get()
    try await again.close()
    try await sender.close()
  }

  @Test func `Only the sender that is named is followed`() async throws {
    let gate = RecordingGate()
    _ = try await receiving(gate, from: "127.0.0.2") { running in
      let (stranger, friend) = (try await socket(), try await socket("127.0.0.2"))
      try await send(TransportScript.datagrams(), by: stranger, to: running.address)
      try await send(TransportScript.datagrams(), by: friend, to: running.address)
      #expect(try await eventually { gate.sinks.first?.samples.isEmpty == false })
      #expect(running.source.reception?.sender?.hasPrefix("127.0.0.2:") == true)
      #expect(running.source.reception?.unfollowed ?? 0 > 0)
      try await stranger.close()
      try await friend.close()
    }
  }

  @Test func `A refused publication pauses the reception and says why`() async throws {
    let gate = RecordingGate(refusal: .tooManyStreams(limit: 1))
    _ = try await receiving(gate) { running in
      let sender = try await socket()
      try await send(TransportScript.datagrams(), by: sender, to: running.address)
      #expect(try await eventually { running.log.lines.contains { $0.contains("limit of 1 streams") } })
      guard case .paused(let reason)? = running.source.reception?.state else {
        return #expect(running.source.reception?.state == .waiting)
      }
      #expect(reason.hasPrefix("refused: "))
      try await sender.close()
    }
  }

  @Test func `A taken port ends the source with the reason`() async throws {
    let other = try await socket()
    let place = DatagramPlace(address: try #require(other.localAddress))
    let log = LogCollector()
    let source = DatagramSource(
      name: try #require(StreamName("field")), place: place, gate: RecordingGate(), clock: .system(),
      logger: log.logger, group: MultiThreadedEventLoopGroup.singleton)
    guard case .failed(let reason) = await source.run() else { return #expect(Bool(false), "it runs") }
    #expect(reason.contains("cannot receive at udp://127.0.0.1:") && log.lines.count == 1)
    try await other.close()
  }
}

@Suite("Datagrams of a transport stream")
struct TransportDatagramTests {
  private func packets(_ count: Int, of size: Int = 188) -> [UInt8] {
    (0..<count).flatMap { _ in [0x47] + [UInt8](repeating: 0, count: size - 1) }
  }

  private func taken(_ bytes: [UInt8]) -> Int? {
    TransportDatagram.packets(in: ByteBuffer(bytes: bytes))?.readableBytes
  }

  @Test func `Whole packets are taken, of both sizes and behind an RTP header`() {
    #expect(taken(packets(1)) == 188 && taken(packets(7)) == 1316 && taken(packets(6, of: 204)) == 1224)
    let header: [UInt8] = [0x80, 0xA1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 9]
    #expect(taken(header + packets(7)) == 1316)
  }

  @Test func `Anything else is not`() {
    for bytes in [
      [], [0x47], packets(1) + [0x47], Array(packets(2).dropFirst()), [0x80, 33], [0x80, 96] + packets(1),
    ] {
      #expect(taken(bytes) == nil)
    }
    var broken = packets(7)
    broken[376] = 0
    #expect(taken(broken) == nil)
  }
}
