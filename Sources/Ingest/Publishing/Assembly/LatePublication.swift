package import Base
package import FMP4
internal import Logging
package import NIOCore

/// A publication that is asked for when its first media has come. What its media ask for meanwhile waits. Confined to an
/// event loop.
package final class LatePublication {
  private enum Phase {
    /// Before the first event of its media. Warnings and captions wait for it.
    case beginning([PublicationAction])
    /// The gate is being asked. What the media asks for meanwhile waits.
    case asking([PublicationAction])
    case live(AdmittedPublication)
    case over
  }

  let stream: StreamName
  private let publisher: Publisher
  private let key: Secret?
  private let software: String
  private let origin: PublishRequest.Origin
  private let clock: SteadyClock
  private let loop: any EventLoop
  /// Called at most once, with the reason, if the server refuses the publication or ends it. Not after `end` and `fail`.
  package var closed: (String) -> Void = { _ in }
  private var phase = Phase.beginning([])
  private var encoder = ""
  /// Frames before its first event that were lost, and that came early.
  private var atStart: (lost: [MediaKind: Int], early: [MediaKind: Int]) = ([:], [:])
  /// Bytes of media that wait for the gate.
  package private(set) var heldBytes = 0

  package init(
    _ stream: StreamName, of publisher: Publisher, key: Secret?, software: String, origin: PublishRequest.Origin,
    clock: SteadyClock, loop: any EventLoop
  ) {
    (self.stream, self.publisher, self.key, self.software) = (stream, publisher, key, software)
    (self.origin, self.clock, self.loop) = (origin, clock, loop)
  }

  /// The sink, once the gate has admitted it, until it ends.
  package var sink: (any MediaSink)? { if case .live(let publication) = phase { publication.sink } else { nil } }

  var isOver: Bool { if case .over = phase { true } else { false } }

  /// Ends it.
  package func end(_ reason: EndReason) {
    if case .live(let publication) = phase { publication.end(reason) }
    (phase, heldBytes) = (.over, 0)
  }

  /// Its media cannot be used.
  package func fail(_ reason: String) {
    switch phase {
    case .live(let publication): publication.end(.failed(reason))
    case .beginning, .asking: publisher.noteRefusal(of: stream, reason)
    case .over: return
    }
    (phase, heldBytes) = (.over, 0)
  }

  private func close(_ reason: String) {
    if isOver { return }
    (phase, heldBytes) = (.over, 0)
    closed(reason)
  }

  // MARK: media

  /// Does what its media ask for. `encoder` is the current name of the encoder, possibly empty.
  package func perform(_ action: PublicationAction, encoder: String) {
    self.encoder = encoder
    switch phase {
    case .over: return
    case .asking(var held):
      if case .event(.sample(let sample)) = action { heldBytes &+= sample.payload.readableBytes }
      guard heldBytes <= PublicationLimits.heldBytes, held.count < PublicationLimits.heldSamples else {
        return close("the server took too long to admit it")
      }
      phase = .asking([])
      held.append(action)
      phase = .asking(held)
    case .beginning(let warnings):
      switch action {
      case .event:
        phase = .asking(warnings + [action])
        ask()
      case .warn, .withdraw, .inBand(.captions): phase = .beginning(warnings + [action])
      case .lost(let kind): atStart.lost[kind, default: 0] += 1
      case .inBand(.early(let kind)): atStart.early[kind, default: 0] += 1
      case .inBand, .log: tell(action)
      }
    case .live(var publication):
      switch action {
      case .event(let event):
        let reason = publication.give(event, encoder: encoder, now: clock.monotonic())
        phase = .live(publication)
        if let reason { close(reason.text) }
      case .lost(let kind): publication.sink.lost(kind)
      case .inBand(let event): publication.sink.carries(event)
      case .warn(let warning): publication.sink.warn(warning)
      case .withdraw(let warning): publication.sink.withdraw(warning)
      case .log: tell(action)
      }
    }
  }

  /// Tells how many bytes the protocol holds for it.
  package func hold(_ bytes: Int) {
    guard case .live(var publication) = phase else { return }
    publication.hold(bytes)
    phase = .live(publication)
  }

  private func tell(_ action: PublicationAction) {
    guard case .log(let level, let text) = action else { return }
    publisher.logger.log(level: level, "\(text)", metadata: publisher.metadata(of: stream))
  }

  // MARK: admission

  private func ask() {
    let bound = NIOLoopBound(self, eventLoop: loop)
    let gate = publisher.gate
    let request = PublishRequest(
      stream: stream, key: key, protocolName: publisher.protocolName, remoteAddress: publisher.remoteAddress,
      host: publisher.host, software: software, origin: origin,
      onEviction: { [loop] reason in loop.execute { bound.value.evicted(reason) } })
    Task { [loop] in
      do throws(PublishRefusal) {
        let sink = try await gate.admit(request)
        loop.execute { bound.value.admitted(to: sink) }
      } catch {
        let reason = error.description
        loop.execute { bound.value.close("refused: \(reason)") }
      }
    }
  }

  private func evicted(_ reason: EndReason) { close(reason.text) }

  private func admitted(to sink: any MediaSink) {
    guard case .asking(let held) = phase else {
      _ = sink.receive(.end(.connectionLost("the publisher left while it was admitted")))
      return
    }
    phase = .live(AdmittedPublication(stream, by: publisher, software: software, sink: sink))
    heldBytes = 0
    for (kind, count) in atStart.lost { for _ in 0..<count { sink.lost(kind) } }
    for (kind, count) in atStart.early { for _ in 0..<count { sink.carries(.early(kind)) } }
    atStart = ([:], [:])
    for action in held { perform(action, encoder: encoder) }
  }
}
