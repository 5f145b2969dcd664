internal import Base
internal import FMP4
internal import MPEGTS
internal import NIOCore
internal import Publishing

/// What one sender sends: a transport stream, published from its first media on. Confined to an event loop.
final class DatagramSession {
  /// Why nothing more is taken from the sender. Not for `end`.
  enum Closure {
    /// Its bytes cannot be used.
    case unusable(String)
    /// The server refused the publication, or ended it.
    case unwanted(String)
  }

  let sender: SocketAddress
  private(set) var lastHeard: MonotonicTime
  private let publication: LatePublication
  private let clock: SteadyClock
  private let loop: any EventLoop
  private let closed: (Closure) -> Void
  private var transport: TransportPublication
  /// Of what is held before the publication is admitted, and the bytes that it was told of.
  private var account: (any HeldBytes)?
  private var told = 0
  private var isOver = false
  private var actions: [PublicationAction] = []
  private var timer: Scheduled<Void>?

  /// `closed` is called at most once, and not after `end`.
  init(
    of sender: SocketAddress, _ publisher: Publisher, stream: StreamName, program: UInt16?, clock: SteadyClock,
    loop: any EventLoop, closed: @escaping (Closure) -> Void
  ) {
    self.sender = sender
    self.clock = clock
    self.loop = loop
    self.closed = closed
    transport = TransportPublication(reading: clock.reading, program.map { .number($0) } ?? .first)
    lastHeard = clock.monotonic()
    publication = LatePublication(
      stream, of: publisher, key: nil, software: "MPEG-TS", origin: .server, clock: clock, loop: loop)
    publication.closed = { [weak self] in self?.close(.unwanted($0)) }
    let bound = NIOLoopBound(self, eventLoop: loop)
    // The session releases it when it is over.
    account = publisher.gate.account(of: stream) { reason in
      loop.execute { bound.value.holdsTooMuch(reason) }
    }
  }

  var counts: TransportCounts { transport.counts }

  /// Takes packets of the transport stream.
  func receive(_ packets: ByteBuffer) {
    lastHeard = clock.monotonic()
    advance { transport, out throws(WireError) in try transport.receive(packets, now: lastHeard, to: &out) }
  }

  /// Ends it. What is complete still counts.
  func end(_ reason: EndReason) {
    let now = clock.monotonic()
    if publication.sink != nil {
      advance { transport, out throws(WireError) in try transport.finish(now: now, to: &out) }
    }
    publication.end(reason)
    quit()
  }

  private func quit() {
    isOver = true
    account = nil
    timer?.cancel()
  }

  private func holdsTooMuch(_ reason: String) {
    // Since then it was admitted, or is over.
    guard account != nil else { return }
    publication.fail(reason)
    close(.unwanted(reason))
  }

  private func close(_ closure: Closure) {
    if isOver { return }
    quit()
    closed(closure)
  }

  // MARK: media

  private func advance(
    _ step: (inout TransportPublication, inout [PublicationAction]) throws(WireError) -> Void
  ) {
    if isOver { return }
    do throws(WireError) {
      if transport.awaitsStart {
        transport.mostHeldAtStart = publication.sink?.mostHeldAtStart ?? account?.mostAtStart ?? .max
      }
      try step(&transport, &actions)
      hold()
      performAll()
      watchTime()
    } catch {
      performAll()
      publication.fail(error.reason)
      close(.unusable(error.reason))
    }
  }

  /// Tells how many bytes are held.
  private func hold() {
    guard publication.sink == nil else {
      account = nil
      return publication.hold(transport.heldBytes)
    }
    let bytes = transport.heldBytes &+ publication.heldBytes
    guard (bytes &- told).magnitude >= PublicationLimits.heldStep else { return }
    told = bytes
    account?.hold(bytes)
  }

  private func performAll() {
    let batch = actions
    actions.removeAll(keepingCapacity: batch.count < 64)
    for action in batch where !isOver { publication.perform(action, encoder: transport.encoder) }
  }

  /// Calls the publication again when a wait of it ends.
  private func watchTime() {
    let now = clock.monotonic()
    guard timer == nil, !isOver, let deadline = transport.deadline(after: now) else { return }
    timer = loop.scheduleTask(
      in: .nanoseconds(deadline &- now),
      onLoop { session in
        session.timer = nil
        let now = session.clock.monotonic()
        session.advance { transport, out throws(WireError) in try transport.tick(now: now, to: &out) }
      })
  }

  private func onLoop(_ body: @escaping @Sendable (DatagramSession) -> Void) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return { body(bound.value) }
  }
}
