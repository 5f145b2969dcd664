internal import FMP4
internal import Logging
internal import NIOCore

/// What one sender sends: a transport stream, published from its first media on. Confined to an event loop.
final class DatagramSession {
  /// Why nothing more is taken from the sender. Not for `end`.
  enum Closure {
    /// Its bytes cannot be used.
    case unusable(String)
    /// The server refused the publication, or ended it.
    case unwanted(String)
  }

  private enum Phase {
    /// Before the first event of its media. Warnings wait for it.
    case beginning([PublicationAction])
    /// The gate is being asked. What the media asks for meanwhile waits.
    case asking([PublicationAction])
    case live(AdmittedPublication)
    case over
  }

  let sender: SocketAddress
  private(set) var lastHeard: MonotonicTime
  private let publisher: Publisher
  private let stream: StreamName
  private let clock: SteadyClock
  private let loop: any EventLoop
  private let closed: (Closure) -> Void
  private var transport: TransportPublication
  private var phase = Phase.beginning([])
  private var actions: [PublicationAction] = []
  private var heldBytes = 0
  private var timer: Scheduled<Void>?

  /// `closed` is called at most once, and not after `end`.
  init(
    of sender: SocketAddress, _ publisher: Publisher, stream: StreamName, program: UInt16?, clock: SteadyClock,
    loop: any EventLoop, closed: @escaping (Closure) -> Void
  ) {
    self.sender = sender
    self.publisher = publisher
    self.stream = stream
    self.clock = clock
    self.loop = loop
    self.closed = closed
    transport = TransportPublication(reading: clock.reading, program.map { .number($0) } ?? .first)
    lastHeard = clock.monotonic()
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
    if case .live = phase {
      advance { transport, out throws(WireError) in try transport.finish(now: now, to: &out) }
    }
    if case .live(let publication) = phase { publication.end(reason) }
    quit()
  }

  private func quit() {
    phase = .over
    timer?.cancel()
  }

  private func close(_ closure: Closure) {
    if case .over = phase { return }
    quit()
    closed(closure)
  }

  // MARK: media

  private func advance(
    _ step: (inout TransportPublication, inout [PublicationAction]) throws(WireError) -> Void
  ) {
    if case .over = phase { return }
    do throws(WireError) {
      try step(&transport, &actions)
      performAll()
      watchTime()
    } catch {
      performAll()
      fail(error.reason)
    }
  }

  private func fail(_ reason: String) {
    switch phase {
    case .live(let publication): publication.end(.failed(reason))
    case .beginning, .asking: publisher.noteRefusal(of: stream, reason)
    case .over: return
    }
    close(.unusable(reason))
  }

  private func performAll() {
    let batch = actions
    actions.removeAll(keepingCapacity: batch.count < 64)
    for action in batch { perform(action) }
  }

  private func perform(_ action: PublicationAction) {
    switch phase {
    case .over: return
    case .asking(var held):
      if case .event(.sample(let sample)) = action { heldBytes &+= sample.payload.readableBytes }
      guard heldBytes <= PublicationLimits.heldBytes, held.count < PublicationLimits.heldSamples else {
        return close(.unwanted("the server took too long to admit it"))
      }
      phase = .asking([])
      held.append(action)
      phase = .asking(held)
    case .beginning(let warnings):
      switch action {
      case .event:
        phase = .asking(warnings + [action])
        ask()
      case .warn, .withdraw: phase = .beginning(warnings + [action])
      case .lost, .inBand, .log: tell(action)
      }
    case .live(var publication):
      switch action {
      case .event(let event):
        let reason = publication.give(event, encoder: transport.encoder, now: clock.monotonic())
        phase = .live(publication)
        if let reason { close(.unwanted(reason.text)) }
      case .lost(let kind): publication.sink.lost(kind)
      case .inBand(let event): publication.sink.carries(event)
      case .warn(let warning): publication.sink.warn(warning)
      case .withdraw(let warning): publication.sink.withdraw(warning)
      case .log: tell(action)
      }
    }
  }

  private func tell(_ action: PublicationAction) {
    guard case .log(let level, let text) = action else { return }
    publisher.logger.log(level: level, "\(text)", metadata: publisher.metadata(of: stream))
  }

  /// Calls the publication again when a wait of it ends.
  private func watchTime() {
    if case .over = phase { return }
    let now = clock.monotonic()
    guard timer == nil, let deadline = transport.deadline(after: now) else { return }
    timer = loop.scheduleTask(
      in: .nanoseconds(deadline &- now),
      onLoop { session in
        session.timer = nil
        let now = session.clock.monotonic()
        session.advance { transport, out throws(WireError) in try transport.tick(now: now, to: &out) }
      })
  }

  // MARK: admission

  private func ask() {
    let bound = NIOLoopBound(self, eventLoop: loop)
    let gate = publisher.gate
    let request = PublishRequest(
      stream: stream, key: nil, protocolName: publisher.protocolName, remoteAddress: publisher.remoteAddress,
      host: publisher.host, software: "MPEG-TS", origin: .server,
      onEviction: { [loop] reason in loop.execute { bound.value.close(.unwanted(reason.text)) } })
    Task { [loop] in
      do throws(PublishRefusal) {
        let sink = try await gate.admit(request)
        loop.execute { bound.value.admitted(to: sink) }
      } catch {
        let reason = error.description
        loop.execute { bound.value.close(.unwanted("refused: \(reason)")) }
      }
    }
  }

  private func admitted(to sink: any MediaSink) {
    guard case .asking(let held) = phase else {
      _ = sink.receive(.end(.connectionLost("the sender left while it was admitted")))
      return
    }
    phase = .live(AdmittedPublication(stream, by: publisher, software: "MPEG-TS", sink: sink))
    heldBytes = 0
    for action in held { perform(action) }
  }

  private func onLoop(_ body: @escaping @Sendable (DatagramSession) -> Void) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return { body(bound.value) }
  }
}
