package import Base
package import FMP4
package import Logging
package import NIOCore

/// The connection of a protocol that a `PublisherConnection` belongs to. Called on its event loop.
package protocol PublisherConnectionOwner: AnyObject {
  /// The gate has admitted the publisher. Take its media from now on.
  func admitted()
  /// Send the reason to the peer and close the connection. The peer may not publish, or not any longer. `isFailure` is
  /// whether it counts as a failure of its address.
  func refuse(_ reason: String, isFailure: Bool)
  /// The same for a refusal of the gate, for protocols that have a code for it.
  func refuse(_ refusal: PublishRefusal, isFailure: Bool)
  /// Close the connection without a message.
  func closeAtOnce()
  /// The stream wants a key frame soon. Called where the publisher makes them as it is asked.
  func keyFrameWanted()
}

extension PublisherConnectionOwner {
  package func refuse(_ refusal: PublishRefusal, isFailure: Bool) { refuse(refusal.description, isFailure: isFailure) }
  package func keyFrameWanted() {}
}

/// A publisher's connection, for all protocols: the time until it publishes, the decision of the gate, the publication,
/// and the time without data. Used on the connection's event loop.
package final class PublisherConnection {
  /// Time limits in nanoseconds.
  package struct Patience: Sendable {
    /// From the start, or from the end of a publication, to the next publication.
    package var publish: Int64
    /// Without received data while publishing.
    package var idle: Int64

    package init(publish: Int64, idle: Int64) {
      (self.publish, self.idle) = (publish, idle)
    }
  }

  /// Delay of publish requests from addresses that have failed too often, in nanoseconds.
  private static let slowAnswer: Int64 = 2_000_000_000

  package let publisher: Publisher
  package weak var owner: (any PublisherConnectionOwner)?
  package private(set) var publication: AdmittedPublication?
  /// Why its newest publication has ended; nil before.
  package private(set) var lastEnd: EndReason?
  /// Its own publication, which has ended, if the connection goes on with others. What is held for those counts for it.
  private var left: AdmittedPublication?
  /// The last message was sent to the peer.
  package private(set) var isClosing = false
  /// The address that limits are counted by.
  private let peer: String
  private let connections: ConnectionRegistry
  private let clock: SteadyClock
  private let patience: Patience
  private let loop: any EventLoop
  /// The requested stream, while the gate is asked.
  private var pending: (stream: StreamName, software: String)?
  /// Number of publish requests, so that an eviction ends the right publication.
  private var attempt = 0
  private var isUnauthenticated = true
  private var isOver = false
  private var lastHeard: MonotonicTime
  private var deadline: Scheduled<Void>?
  private var idleTimer: RepeatedTask?

  package init(
    _ publisher: Publisher, peer: String, connections: ConnectionRegistry, clock: SteadyClock, patience: Patience,
    loop: any EventLoop
  ) {
    self.publisher = publisher
    self.peer = peer
    self.connections = connections
    self.clock = clock
    self.patience = patience
    self.loop = loop
    lastHeard = clock.monotonic()
  }

  private var now: MonotonicTime { clock.monotonic() }

  /// Whether media of the connection is of use.
  package var takesMedia: Bool { publication != nil || left != nil }

  /// Whether the gate is being asked.
  package var isAsking: Bool { pending != nil }

  // MARK: the connection

  /// Registers the connection. False if the listener is closing.
  package func begin() -> Bool {
    guard connections.add(self, at: publisher.localAddress, end: onLoopWith { $0.end(withListener: $1) }) else {
      return false
    }
    awaitPublication()
    return true
  }

  /// Records that data was received.
  package func heard(now: MonotonicTime) { lastHeard = now }

  /// Records that the peer is connected, where that was awaited.
  package func connected() {
    lastHeard = now
    publication?.sink.connected()
  }

  /// Records that the last message is being sent.
  package func close() {
    isClosing = true
    deadline?.cancel()
  }

  /// Records that the connection is lost. Received data still counts; call `finish` after it was handled.
  package func lose() {
    isOver = true
    deadline?.cancel()
    idleTimer?.cancel()
  }

  /// Ends everything after the last data. `lossReason` is used if the publication had not ended. `hasFailed` is whether
  /// the peer broke the rules.
  package func finish(_ lossReason: String, hasFailed: Bool) {
    end(.connectionLost(lossReason))
    left = nil
    if isUnauthenticated {
      isUnauthenticated = false
      connections.noLongerUnauthenticated(peer, failed: hasFailed, now: now)
    }
    connections.remove(self, of: peer)
  }

  /// Handles the end of the listener.
  private func end(withListener reason: EndReason) {
    lastEnd = reason
    end(reason)
    if isClosing { owner?.closeAtOnce() } else { owner?.refuse(reason.text, isFailure: false) }
  }

  /// Logs a line about its publication or, without one, about the connection. File and line of the caller identify
  /// repeated lines, so that the log can suppress them.
  package func log(_ level: Logger.Level, _ text: String, file: String = #fileID, line: UInt = #line) {
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
    guard takesMedia, silence >= patience.idle else { return }
    let reason = EndReason.connectionLost("no byte for \(silence / 1_000_000_000) s")
    lastEnd = reason
    end(reason)
    owner?.closeAtOnce()
  }

  // MARK: admission

  /// Asks the gate about a publish request. The owner gets the decision.
  ///
  /// - Parameter connection: where it is awaited, call `connected` when it is made.
  package func ask(
    _ stream: StreamName, key: Secret?, software: String, keyFrames: PublishRequest.KeyFrames = .asItsEncoderHasThem,
    connection: PublishRequest.Connection = .made
  ) {
    guard !isOver else { return }
    attempt += 1
    pending = (stream, software)
    let attempt = attempt
    let request = publisher.request(
      stream, key: key, software: software, keyFrames: keyFrames, connection: connection,
      onKeyFrameWanted: keyFrames == .asAsked ? onLoop { $0.owner?.keyFrameWanted() } : nil,
      onEviction: onLoopWith { $0.evicted(attempt, $1) })
    guard let slowing = connections.slowing(peer, now: now) else { return admit(request) }
    if slowing.isNew {
      publisher.logger.warning(
        """
        \(publisher.protocolName) \(peer): too many failed attempts; publishers from this address wait 2 s until failures \
        become rarer
        """)
    }
    // Before the key is checked, so that the delay does not show whether it was right.
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
      if isUnauthenticated {
        isUnauthenticated = false
        connections.noLongerUnauthenticated(peer, failed: false, now: now)
      }
      deadline?.cancel()
      lastHeard = now
      watchIdleness()
      owner?.admitted()
    case .refused(let refusal):
      guard !isOver, !isClosing else { return }
      publisher.logger.warning("refused: \(refusal.description)", metadata: publisher.metadata(of: stream))
      guard refusal == .unauthorized else {
        owner?.refuse(refusal, isFailure: false)
        return
      }
      // A random delay slows the guessing of keys and hides timing.
      loop.scheduleTask(
        in: .milliseconds(.random(in: 100...400)),
        onLoop { $0.owner?.refuse(refusal, isFailure: true) })
    }
  }

  // MARK: the publication

  /// Does what the publication's media ask for. File and line are the caller's, as for `log`.
  package func perform(_ action: PublicationAction, encoder: String, file: String = #fileID, line: UInt = #line) {
    switch action {
    case .event(let event): give(event, encoder: encoder)
    case .lost(let kind): publication?.sink.lost(kind)
    case .inBand(let event): publication?.sink.carries(event)
    case .warn(let warning): publication?.sink.warn(warning)
    case .withdraw(let warning): publication?.sink.withdraw(warning)
    case .log(let level, let text): log(level, text, file: file, line: line)
    }
  }

  /// Passes an event of the publication to its sink. `encoder` is the current name of the encoder, possibly empty.
  package func give(_ event: MediaEvent, encoder: String) {
    if case .end(let reason) = event { return end(reason) }
    guard let reason = publication?.give(event, encoder: encoder, now: now) else { return }
    (publication, lastEnd) = (nil, reason)
    owner?.refuse(reason.text, isFailure: false)
  }

  /// Tells how many bytes the protocol holds for the publication: of unfinished messages, and before its start. To be called
  /// before what has come is passed on, so that nothing counts twice.
  package func hold(_ bytes: Int) { publication == nil ? left?.hold(bytes) : publication?.hold(bytes) }

  /// As `MediaSink.mostHeldAtStart`, without bound before a publication is admitted.
  package var mostHeldAtStart: Int { publication?.sink.mostHeldAtStart ?? .max }

  /// Ends the publication. The connection may publish again within the usual time limit.
  private func end(_ reason: EndReason) {
    guard var current = publication else { return }
    (publication, lastEnd) = (nil, reason)
    idleTimer?.cancel()
    idleTimer = nil
    current.hold(0)
    current.end(reason)
    if !isOver, !isClosing { awaitPublication() }
  }

  /// Ends the publication alone: the connection goes on with others of its own, until nothing comes any more.
  package func leave(_ reason: EndReason) {
    guard let current = publication else { return }
    (publication, left) = (nil, current)
    current.end(reason)
  }

  /// Handles the end of the publication by the server. Later media of the publisher is ignored.
  private func evicted(_ attempt: Int, _ reason: EndReason) {
    guard attempt == self.attempt, let current = publication ?? left else { return }
    (publication, left, lastEnd) = (nil, nil, reason)
    publisher.tellEnd(of: current.stream, reason)
    owner?.refuse(reason.text, isFailure: false)
  }

  // MARK: threads

  /// Wraps a call of this connection so that any thread may make it; it runs on the event loop.
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
