internal import Base
internal import FMP4
internal import Logging
package import NIOCore
package import Publishing

/// The request of an upload. Called on its event loop.
package protocol TransportUploadOwner: AnyObject {
  /// The publisher is admitted: hand in the bytes from now on.
  func uploadIsAdmitted()
  /// Nothing more is taken. Say why and close.
  func uploadIsRefused(_ refusal: TransportUpload.Refusal)
  /// Close without an answer: nothing has come for too long.
  func uploadIsSilent()
  /// Hand in nothing, or go on, because media came much faster than it plays.
  func uploadIsPaused(_ isPaused: Bool)
}

/// A transport stream that a client sends as the body of a request. Used on the request's event loop.
package final class TransportUpload {
  package enum Refusal: Sendable {
    /// The gate refused.
    case gate(PublishRefusal)
    /// Too many uploads of the address wait to be admitted, or the server is stopping.
    case tooManyWaiting
    /// The bytes cannot be used.
    case unusable(String)
    /// The server ended the publication, or the wait for it.
    case ended(String)
  }

  /// Media units that are taken at once, and per second. Ten minutes of buffered media are taken without delay, more at
  /// some twenty times its speed.
  private static let (burst, perSecond) = (20_000.0, 2_000.0)

  private let life: PublisherConnection
  private let ingest: TransportIngest
  private let loop: any EventLoop
  private weak var owner: (any TransportUploadOwner)?
  private var transport: TransportPublication
  private var others: FurtherPrograms?
  private var actions: [PublicationAction] = []
  private var isOver = false
  /// A sample was published, of any programme.
  private var hasPublished = false
  private var timer: Scheduled<Void>?
  private var pauseTimer: Scheduled<Void>?
  private var room: (units: Double, at: MonotonicTime)

  init(
    of publisher: Publisher, peer: String, to ingest: TransportIngest, _ programs: ProgramChoice,
    owner: any TransportUploadOwner, on loop: any EventLoop
  ) {
    self.ingest = ingest
    self.loop = loop
    self.owner = owner
    transport = TransportPublication(reading: ingest.clock.reading, programs)
    room = (Self.burst, ingest.clock.monotonic())
    life = PublisherConnection(
      publisher, peer: peer, connections: ingest.connections, clock: ingest.clock,
      patience: PublisherConnection.Patience(
        publish: ingest.configuration.publishDeadline, idle: ingest.configuration.idleTimeout), loop: loop)
    life.owner = self
  }

  func begin(_ stream: StreamName, key: Secret?, software: String) {
    guard life.begin() else { return end(.tooManyWaiting) }
    others = FurtherPrograms(
      beside: stream, of: life.publisher, key: key, software: software, clock: ingest.clock, loop: loop)
    life.ask(stream, key: key, software: software)
  }

  private var now: MonotonicTime { ingest.clock.monotonic() }

  // MARK: the body

  package func receive(_ bytes: ByteBuffer) {
    let now = now
    life.heard(now: now)
    // Before the bytes count: time without any gives no more than a burst.
    room = (min(Self.burst, room.units + Double(now &- room.at) / 1e9 * Self.perSecond), now)
    advance { transport, out throws(WireError) in try transport.receive(bytes, now: now, to: &out) }
    pauseIfFast()
  }

  /// The body is complete: the publisher has ended the stream. If nothing of it was published the owner is told why.
  package func finish() {
    takeRest()
    guard hasPublished || isOver else { return fail(transport.fault) }
    others?.end(.finished)
    life.give(.end(.finished), encoder: transport.encoder)
    quit("", hasFailed: false)
  }

  /// The connection is lost. What is complete still counts.
  package func abandon(_ reason: String) {
    if life.takesMedia { takeRest() }
    quit(reason, hasFailed: false)
  }

  private func takeRest() {
    let now = now
    advance { transport, out throws(WireError) in try transport.finish(now: now, to: &out) }
  }

  private func advance(
    _ step: (inout TransportPublication, inout [PublicationAction]) throws(WireError) -> Void
  ) {
    guard !isOver else { return }
    if transport.awaitsStart { transport.mostHeldAtStart = life.mostHeldAtStart }
    do throws(WireError) {
      try step(&transport, &actions)
      life.hold(transport.heldBytes &+ (others?.heldBytes ?? 0))
      performAll()
      watchTime()
    } catch {
      performAll()
      fail(error)
    }
  }

  private func fail(_ error: WireError) {
    life.give(.end(.failed(error.reason)), encoder: transport.encoder)
    end(.unusable(error.reason), hasFailed: error.code == .malformed)
  }

  private func performAll() {
    let batch = actions
    actions.removeAll(keepingCapacity: batch.count < 64)
    for action in batch where !isOver { perform(action) }
    let further = transport.takeFurther()
    if further.contains(where: \.firstHasLeft) { life.leave(FurtherPrograms.gone) }
    guard !further.isEmpty, !isOver, let others else { return }
    let samples = others.perform(further)
    room.units -= Double(samples)
    hasPublished = hasPublished || samples > 0
  }

  private func perform(_ action: PublicationAction) {
    if case .event(.sample) = action {
      room.units -= 1
      hasPublished = true
    }
    life.perform(action, encoder: transport.encoder)
  }

  // MARK: time

  /// Calls the publication again when a wait of it ends.
  private func watchTime() {
    let now = now
    guard timer == nil, !isOver, let deadline = transport.deadline(after: now) else { return }
    timer = schedule(deadline &- now) { upload in
      upload.timer = nil
      let now = upload.now
      upload.advance { transport, out throws(WireError) in try transport.tick(now: now, to: &out) }
    }
  }

  /// Takes nothing for a while after too much media.
  private func pauseIfFast() {
    guard room.units < 0, pauseTimer == nil, !isOver else { return }
    owner?.uploadIsPaused(true)
    pauseTimer = schedule(Int64(-room.units / Self.perSecond * 1e9) + 1_000_000) { upload in
      upload.pauseTimer = nil
      // The client may have sent enough while nothing was read.
      upload.life.heard(now: upload.now)
      upload.owner?.uploadIsPaused(false)
    }
  }

  private func schedule(
    _ nanoseconds: Int64, _ body: @escaping @Sendable (TransportUpload) -> Void
  ) -> Scheduled<Void> {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return loop.scheduleTask(in: .nanoseconds(nanoseconds)) { body(bound.value) }
  }

  // MARK: the end

  private func end(_ refusal: Refusal, hasFailed: Bool = false) {
    guard !isOver else { return }
    quit("", hasFailed: hasFailed)
    owner?.uploadIsRefused(refusal)
  }

  private func quit(_ lossReason: String, hasFailed: Bool) {
    guard !isOver else { return }
    isOver = true
    // A client that does not read the reason keeps no memory for it.
    transport = TransportPublication(reading: ingest.clock.reading)
    timer?.cancel()
    pauseTimer?.cancel()
    others?.end(with: life.lastEnd ?? .connectionLost(lossReason))
    life.lose()
    life.finish(lossReason, hasFailed: hasFailed)
  }
}

extension TransportUpload: PublisherConnectionOwner {
  package func admitted() {
    transport.mostHeldAtStart = life.mostHeldAtStart
    owner?.uploadIsAdmitted()
  }

  package func refuse(_ refusal: PublishRefusal, isFailure: Bool) { end(.gate(refusal), hasFailed: isFailure) }
  package func refuse(_ reason: String, isFailure: Bool) { end(.ended(reason), hasFailed: isFailure) }

  package func closeAtOnce() {
    let hadOwner = !isOver
    quit("", hasFailed: false)
    if hadOwner { owner?.uploadIsSilent() }
  }
}
