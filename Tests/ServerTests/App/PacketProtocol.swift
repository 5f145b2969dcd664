import Base
import FMP4
import Logging
import NIOCore
import NIOPosix
import Publishing
import Synchronization

/// A protocol that is none of weir's, as one in Sources would be: packets over TCP with a track's number, a clock of 90 kHz in
/// 33 bits that wraps, and the codec's own bytes.
final class PacketListener: IngestListener {
  struct Packet {
    enum Kind: UInt8 { case name, h264Configuration, aacConfiguration, frame, audio, end }

    var kind: Kind
    var track: UInt32 = 0
    var time: UInt64 = 0
    var payload: [UInt8] = []

    static let range: UInt64 = 1 << 33

    var bytes: ByteBuffer {
      var bytes = ByteBuffer(integer: kind.rawValue)
      bytes.writeInteger(track)
      bytes.writeInteger(time % Self.range)
      bytes.writeInteger(UInt32(payload.count))
      bytes.writeBytes(payload)
      return bytes
    }
  }

  struct Shared: Sendable {
    var gate: any PublishGate
    var clock: SteadyClock
    var logger: Logger
    var connections = ConnectionRegistry(limits: PeerLimits())
  }

  private let shared: Shared
  private let channels = Mutex<[any Channel]>([])
  /// Where it listens.
  var addresses: [SocketAddress] { channels.withLock { $0.compactMap(\.localAddress) } }

  init(_ shared: Shared) { self.shared = shared }

  func start(_ place: ListenEndpoint, tls: TLSContextSource?) async throws -> SocketAddress {
    let channel = try await ServerBootstrap(group: NIOSingletons.posixEventLoopGroup)
      .childChannelInitializer { [shared] channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(PacketConnection(shared, on: channel))
        }
      }
      .listen(at: place)
    channels.withLock { $0.append(channel) }
    guard let address = channel.localAddress else { throw ChannelError.unknownLocalAddress }
    return address
  }

  var refusals: ConnectionRefusals { shared.connections.refusals }

  func stop() async {
    for channel in channels.withLock({ $0 }) { try? await channel.close() }
    for end in shared.connections.closeForGood() { end(.shutdown) }
    await shared.connections.allGone()
  }
}

private final class PacketConnection: ChannelInboundHandler, PublisherConnectionOwner {
  typealias InboundIn = ByteBuffer

  private let clock: SteadyClock
  private let life: PublisherConnection
  private var publication: Publication
  private var wire = WireClock(hertz: 90_000, bits: 33)
  private var received = ByteBuffer()
  private var context: ChannelHandlerContext?
  private var ticks: RepeatedTask?

  init(_ shared: PacketListener.Shared, on channel: any Channel) {
    clock = shared.clock
    let peer = PeerText.host(of: channel.remoteAddress)
    let publisher = Publisher(
      protocolName: "PACKETS", remoteAddress: PeerText.place(of: channel.remoteAddress), host: peer, gate: shared.gate,
      logger: shared.logger)
    life = PublisherConnection(
      publisher, peer: peer, connections: shared.connections, clock: clock,
      patience: PublisherConnection.Patience(publish: 10_000_000_000, idle: 10_000_000_000), loop: channel.eventLoop)
    publication = Publication(reading: clock.reading)
    life.owner = self
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    if !life.begin() { context.close(promise: nil) }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    ticks = context.eventLoop.scheduleRepeatedTask(initialDelay: .milliseconds(100), delay: .milliseconds(100)) { _ in
      let connection = bound.value
      guard !connection.life.isAsking, !connection.life.isClosing else { return }
      connection.act { now, actions throws(WireError) in try connection.publication.tick(now: now, to: &actions) }
    }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    life.heard(now: clock.monotonic())
    received.writeImmutableBuffer(unwrapInboundIn(data))
    readPackets()
  }

  func channelInactive(context: ChannelHandlerContext) {
    ticks?.cancel()
    life.lose()
    life.finish("the publisher is gone", hasFailed: false)
  }

  func admitted() { readPackets() }

  func refuse(_ reason: String, isFailure: Bool) {
    life.close()
    closeAtOnce()
  }

  func closeAtOnce() { context?.close(promise: nil) }

  private func readPackets() {
    while !life.isAsking, !life.isClosing, let packet = nextPacket() {
      act { now, actions throws(WireError) in try take(packet, now, to: &actions) }
    }
  }

  private func act(_ body: (_ now: MonotonicTime, _ actions: inout [PublicationAction]) throws(WireError) -> Void) {
    var actions: [PublicationAction] = []
    do {
      try body(clock.monotonic(), &actions)
    } catch {
      return refuse("\(error)", isFailure: true)
    }
    for action in actions { life.perform(action, encoder: publication.encoder) }
  }

  private func take(
    _ packet: PacketListener.Packet, _ now: MonotonicTime, to actions: inout [PublicationAction]
  ) throws(WireError) {
    let (track, payload) = (TrackID(packet.track), ByteBuffer(bytes: packet.payload))
    switch packet.kind {
    case .name:
      guard let name = StreamName(String(buffer: payload)) else { throw WireError(.malformed, "no name") }
      life.ask(name, key: nil, software: "packets")
    case .h264Configuration:
      _ = try publication.configure(track, .h264, record: payload, now: now, to: &actions)
    case .aacConfiguration:
      _ = try publication.configure(track, .aac, record: payload, now: now, to: &actions)
    case .frame, .audio:
      let unit = WireUnit(
        track: track, coding: packet.kind == .frame ? .h264 : .aac, time: wire.nanoseconds(packet.time),
        payload: payload)
      publication.receive(unit, now: now, to: &actions)
    case .end: life.give(.end(.finished), encoder: publication.encoder)
    }
  }

  private func nextPacket() -> PacketListener.Packet? {
    var bytes = received
    guard let kind = bytes.readInteger(as: UInt8.self).flatMap(PacketListener.Packet.Kind.init),
      let track = bytes.readInteger(as: UInt32.self), let time = bytes.readInteger(as: UInt64.self),
      let payload = bytes.readInteger(as: UInt32.self).flatMap({ bytes.readBytes(length: Int($0)) })
    else { return nil }
    received = bytes
    return PacketListener.Packet(kind: kind, track: track, time: time, payload: payload)
  }
}
