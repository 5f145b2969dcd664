internal import FMP4
internal import Logging
internal import NIOCore

/// From the wish to publish to the end of the publication: asks the gate, hands events to the sink, tells the log.
extension RTMPConnection {
  // MARK: admission

  func ask(_ intent: CommandSession.PublishIntent) {
    guard let context else { return }
    attempt += 1
    pending = intent
    setReading()
    guard let slowing = shared.connections.slowing(peer, now: now) else { return admit(intent, context) }
    if slowing.isNew {
      shared.logger.warning(
        "RTMP \(peer): too many failed attempts; whoever publishes from there waits 2 s until they get rarer")
    }
    let attempt = attempt
    // Before the key is looked at: nobody learns from the time whether it was right.
    context.eventLoop.scheduleTask(
      in: .nanoseconds(RTMPLimits.slowAnswer),
      onLoop(context) { connection in
        guard connection.attempt == attempt, let context = connection.context, !connection.isClosing else { return }
        connection.admit(intent, context)
      })
  }

  private func admit(_ intent: CommandSession.PublishIntent, _ context: ChannelHandlerContext) {
    let attempt = attempt
    let evicted = onLoopWith(context) { (connection, reason: EndReason) in connection.evicted(attempt, reason) }
    let request = publisher.request(
      intent.stream, key: intent.key, software: intent.software, onEviction: evicted)
    let answered = onLoopWith(context) { (connection, answer: Answer) in connection.answered(answer) }
    let gate = shared.gate
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
    guard let intent = pending else { return }
    pending = nil
    switch answer {
    case .admitted(let sink):
      guard let context, !isClosing else {
        _ = sink.receive(.end(.connectionLost("the publisher left while it was admitted")))
        return
      }
      publication = AdmittedPublication(intent.stream, by: publisher, software: intent.software, sink: sink)
      if isStranger {
        isStranger = false
        shared.connections.noLongerStranger(peer, failed: false, now: now)
      }
      deadline?.cancel()
      lastRead = now
      context.channel.setOption(
        .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: RTMPLimits.readSizeWhilePublishing)
      ).whenFailure { _ in }
      watchIdleness(context)
      session.admit(now: now, to: &actions)
      perform()
      setReading()
    case .refused(let refusal):
      guard context != nil, !isClosing else { return }
      publisher.logger.warning(
        "refused: \(refusal.description)", metadata: publisher.metadata(of: intent.stream))
      guard refusal == .unauthorized else { return refuse(refusal.description, .quiet) }
      // Whoever guesses keys waits, and learns nothing from how long.
      let delay = TimeAmount.milliseconds(.random(in: 100...400))
      if let context {
        context.eventLoop.scheduleTask(
          in: delay, onLoop(context) { $0.refuse(refusal.description, .failure) })
      }
    }
  }

  func refuse(_ reason: String, _ ending: RTMPAction.Ending) {
    guard context != nil, !isClosing else { return }
    session.refuse(reason: reason, ending: ending, to: &actions)
    perform()
  }

  // MARK: the publication

  func deliver(_ event: MediaEvent) {
    if case .end(let reason) = event { return endPublication(reason) }
    guard let reason = publication?.give(event, encoder: session.encoder, now: now) else { return }
    publication = nil
    refuse(reason.text, .quiet)
  }

  /// Tells the sink that it was the last event.
  func endPublication(_ reason: EndReason) {
    guard let current = publication else { return }
    publication = nil
    idleTimer?.cancel()
    idleTimer = nil
    current.end(reason)
    if let context, !isClosing {
      // The connection may publish again, within the time that any connection has.
      deadline = context.eventLoop.scheduleTask(
        in: .nanoseconds(shared.configuration.publishDeadline), onLoop(context) { $0.publishDeadlinePassed() })
    }
  }

  /// The server has given the publication up; what the publisher still sends is ignored.
  private func evicted(_ attempt: Int, _ reason: EndReason) {
    guard attempt == self.attempt, let current = publication else { return }
    publication = nil
    publisher.tellEnd(of: current.stream, reason)
    refuse(reason.text, .quiet)
  }

  /// The listener stops.
  func shutDown() {
    endPublication(.shutdown)
    if isClosing { context?.close(promise: nil) } else { refuse(EndReason.shutdown.text, .quiet) }
  }
}
