internal import FMP4
internal import Logging
internal import NIOCore

/// The connection that a `PublisherConnection` looks after. Called on its event loop.
protocol PublisherConnectionOwner: AnyObject {
  /// The gate has admitted the publisher: its media are taken from now on.
  func admitted()
  /// The peer is to hear why it may not publish, or no longer, and the connection is to be closed. `isFailure`: its address is
  /// held to account.
  func refuse(_ reason: String, isFailure: Bool)
  /// Close it; nobody is there to hear anything.
  func closeAtOnce()
}

/// A publisher's connection, whatever protocol it speaks: how long it may take until it publishes, what the gate says, its
/// publication from the admission to the end, and how long it may be silent meanwhile. Lives on the connection's event loop.
final class PublisherConnection {
  /// Nanoseconds.
  struct Patience: Sendable {
    /// From the beginning, and from the end of a publication, to the next one.
    var publish: Int64
    /// Without a word while it publishes.
    var idle: Int64
  }

  /// How long whoever wants to publish waits where its address has failed too often, in nanoseconds.
  private static let slowAnswer: Int64 = 2_000_000_000

  let publisher: Publisher
  weak var owner: (any PublisherConnectionOwner)?
  private(set) var publication: AdmittedPublication?
  /// The peer has heard the last word.
  private(set) var isClosing = false
  /// The address as it is held to account.
  private let peer: String
  private let connections: ConnectionRegistry
  private let clock: SteadyClock
  private let patience: Patience
  private let loop: any EventLoop
  /// What it wants to publish, while the gate is asked.
  private var pending: (stream: StreamName, software: String)?
  /// Counts what it wanted to publish, so that an eviction reaches the publication it means.
  private var attempt = 0
  private var isStranger = true
  private var isOver = false
  private var lastHeard: Int64
  private var deadline: Scheduled<Void>?
  private var idleTimer: RepeatedTask?

  init(
    _ publisher: Publisher, peer: String, connections: ConnectionRegistry, clock: SteadyClock, patience: Patience,
    loop: any EventLoop
  ) {
    self.publisher = publisher
    self.peer = peer
    self.connections = connections
    self.clock = clock
    self.patience = patience
    self.loop = loop
    lastHeard = clock.monotonicNanoseconds()
  }

  private var now: Int64 { clock.monotonicNanoseconds() }

  /// The gate is thinking about it.
  var isAsking: Bool { pending != nil }

  // MARK: the connection

  /// It is there. False where the listener is closing.
  func begin() -> Bool {
    guard connections.add(self, end: onLoop { $0.shutDown() }) else { return false }
    awaitPublication()
    return true
  }

  /// The peer has said something.
  func heard(now: Int64) { lastHeard = now }

  /// The last word goes to the peer now.
  func close() {
    isClosing = true
    deadline?.cancel()
  }

  /// It is gone. What it has said still counts: `finish` follows when all of it was heard.
  func lose() {
    isOver = true
    deadline?.cancel()
    idleTimer?.cancel()
  }

  /// There is nothing more to hear, and why where nobody ended the publication. `hasFailed`: the peer did what is not allowed.
  func finish(_ lossReason: String, hasFailed: Bool) {
    end(.connectionLost(lossReason))
    if isStranger {
      isStranger = false
      connections.noLongerStranger(peer, failed: hasFailed, now: now)
    }
    connections.remove(self, of: peer)
  }

  /// The listener stops.
  private func shutDown() {
    end(.shutdown)
    if isClosing { owner?.closeAtOnce() } else { owner?.refuse(EndReason.shutdown.text, isFailure: false) }
  }

  /// A line about its publication or, where it has none, about itself. Where it is said from tells lines apart, so that the log
  /// can leave out what is said too often.
  func log(_ level: Logger.Level, _ text: String, file: String = #fileID, line: UInt = #line) {
    let subject = publication == nil ? "\(publisher.protocolName) \(publisher.remoteAddress): " : ""
    publisher.logger.log(
      level: level, "\(subject)\(text)", metadata: publisher.metadata(of: publication?.stream), file: file, line: line)
  }

  // MARK: time

  private func awaitPublication() {
    deadline = loop.scheduleTask(in: .nanoseconds(patience.publish), onLoop { $0.publishDeadlinePassed() })
  }

  private func publishDeadlinePassed() {
    guard publication == nil, !isClosing else { return }
    log(.info, "closed: nothing was published in time")
    owner?.refuse("nothing was published in time", isFailure: true)
  }

  private func watchIdleness() {
    let check = onLoop { $0.checkIdleness() }
    let interval = TimeAmount.nanoseconds(max(patience.idle / 10, 1_000_000))
    idleTimer = loop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { _ in check() }
  }

  private func checkIdleness() {
    let silence = now &- lastHeard
    guard publication != nil, silence >= patience.idle else { return }
    end(.connectionLost("no byte for \(silence / 1_000_000_000) s"))
    owner?.closeAtOnce()
  }

  // MARK: admission

  /// The peer wants to publish: the owner hears what the gate says.
  func ask(_ stream: StreamName, key: Secret?, software: String) {
    guard !isOver else { return }
    attempt += 1
    pending = (stream, software)
    let attempt = attempt
    let request = publisher.request(
      stream, key: key, software: software, onEviction: onLoopWith { $0.evicted(attempt, $1) })
    guard let slowing = connections.slowing(peer, now: now) else { return admit(request) }
    if slowing.isNew {
      publisher.logger.warning(
        """
        \(publisher.protocolName) \(peer): too many failed attempts; whoever publishes from there waits 2 s until they get \
        rarer
        """)
    }
    // Before the key is looked at: nobody learns from the time whether it was right.
    loop.scheduleTask(
      in: .nanoseconds(Self.slowAnswer),
      onLoop { connection in
        if connection.attempt == attempt, !connection.isOver, !connection.isClosing { connection.admit(request) }
      })
  }

  private func admit(_ request: PublishRequest) {
    let answered = onLoopWith { (connection, answer: Answer) in connection.answered(answer) }
    let gate = publisher.gate
    Task {
      do throws(PublishRefusal) {
        answered(.admitted(try await gate.admit(request)))
      } catch {
        answered(.refused(error))
      }
    }
  }

  private enum Answer: Sendable {
    case admitted(any MediaSink)
    case refused(PublishRefusal)
  }

  private func answered(_ answer: Answer) {
    guard let (stream, software) = pending else { return }
    pending = nil
    switch answer {
    case .admitted(let sink):
      guard !isOver, !isClosing else {
        _ = sink.receive(.end(.connectionLost("the publisher left while it was admitted")))
        return
      }
      publication = AdmittedPublication(stream, by: publisher, software: software, sink: sink)
      if isStranger {
        isStranger = false
        connections.noLongerStranger(peer, failed: false, now: now)
      }
      deadline?.cancel()
      lastHeard = now
      watchIdleness()
      owner?.admitted()
    case .refused(let refusal):
      guard !isOver, !isClosing else { return }
      publisher.logger.warning("refused: \(refusal.description)", metadata: publisher.metadata(of: stream))
      guard refusal == .unauthorized else {
        owner?.refuse(refusal.description, isFailure: false)
        return
      }
      // Whoever guesses keys waits, and learns nothing from how long.
      loop.scheduleTask(
        in: .milliseconds(.random(in: 100...400)),
        onLoop { $0.owner?.refuse(refusal.description, isFailure: true) })
    }
  }

  // MARK: the publication

  /// Something happened to the publication; `encoder` is what the encoder calls itself by now, maybe nothing.
  func give(_ event: MediaEvent, encoder: String) {
    if case .end(let reason) = event { return end(reason) }
    guard let reason = publication?.give(event, encoder: encoder, now: now) else { return }
    publication = nil
    owner?.refuse(reason.text, isFailure: false)
  }

  /// It is over; the connection may publish again, within the time that any connection has.
  private func end(_ reason: EndReason) {
    guard let current = publication else { return }
    publication = nil
    idleTimer?.cancel()
    idleTimer = nil
    current.end(reason)
    if !isOver, !isClosing { awaitPublication() }
  }

  /// The server has given the publication up; what the publisher still sends is ignored.
  private func evicted(_ attempt: Int, _ reason: EndReason) {
    guard attempt == self.attempt, let current = publication else { return }
    publication = nil
    publisher.tellEnd(of: current.stream, reason)
    owner?.refuse(reason.text, isFailure: false)
  }

  // MARK: threads

  /// A call of this connection that may be made from any thread and happens on its event loop.
  private func onLoop(_ body: @escaping @Sendable (PublisherConnection) -> Void) -> @Sendable () -> Void {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return { [loop] in
      if loop.inEventLoop { body(bound.value) } else { loop.execute { body(bound.value) } }
    }
  }

  private func onLoopWith<Value: Sendable>(
    _ body: @escaping @Sendable (PublisherConnection, Value) -> Void
  ) -> @Sendable (Value) -> Void {
    let bound = NIOLoopBound(self, eventLoop: loop)
    return { [loop] value in loop.execute { body(bound.value, value) } }
  }
}
