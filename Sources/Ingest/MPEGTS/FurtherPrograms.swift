package import Base
package import FMP4
internal import Logging
package import NIOCore
package import Publishing

/// The programmes of a connection beside its own publication. Each is a stream of its own, with the connection's name and
/// the programme's number: `cam-7`. The first programme is among them, as `cam`, once it has left and comes again. The gate is
/// asked for each when its media comes, with the connection's key. Confined to an event loop.
package final class FurtherPrograms {
  private let stream: StreamName
  private let publisher: Publisher
  private let key: Secret?
  private let software: String
  private let clock: SteadyClock
  private let loop: any EventLoop
  private var publications: [UInt16: LatePublication] = [:]
  /// A table of programmes may change with each packet, and each new programme asks the gate.
  private var asks = TokenBucket(burst: 32, perSecond: 1)
  private var hasTold = false

  /// Why a programme ends that the stream has no longer.
  package static let gone = EndReason.connectionLost("the programme is no longer in the stream")

  package init(
    beside stream: StreamName, of publisher: Publisher, key: Secret?, software: String, clock: SteadyClock,
    loop: any EventLoop
  ) {
    (self.stream, self.publisher, self.key, self.software) = (stream, publisher, key, software)
    (self.clock, self.loop) = (clock, loop)
  }

  /// Does what the programmes ask for. Returns how many samples there were.
  package func perform(_ all: [TransportPublication.Further]) -> Int {
    var samples = 0
    for further in all {
      if further.end == .gone, further.actions.isEmpty, publications[further.program] == nil { continue }
      guard let publication = publication(of: further) else { continue }
      for action in further.actions {
        if case .event(.sample) = action { samples += 1 }
        publication.perform(action, encoder: further.encoder)
      }
      switch further.end {
      case .unusable(let reason)?: publication.fail(reason)
      case .gone?:
        publication.end(Self.gone)
        publications[further.program] = nil
      case nil: break
      }
    }
    return samples
  }

  /// Bytes of media that wait for the gate.
  package var heldBytes: Int { publications.values.reduce(0) { $0 &+ $1.heldBytes } }

  /// Takes the figures of the connection.
  package func measured(_ figures: LinkFigures) {
    for publication in publications.values { publication.sink?.measured(figures) }
  }

  /// The connection is over.
  func end(_ reason: EndReason) {
    for publication in publications.values { publication.end(reason) }
    publications = [:]
  }

  /// The connection is over, as its first programme ended.
  package func end(with first: EndReason) {
    switch first {
    case .shutdown, .connectionLost: end(first)
    case .finished, .failed, .replaced:
      end(.connectionLost("the connection's first programme ended (\(first.text))"))
    }
  }

  private func publication(of further: TransportPublication.Further) -> LatePublication? {
    let program = further.program
    if let known = publications[program] { return known }
    guard let name = further.isFirst ? stream : StreamName("\(stream)-\(program)"),
      asks.take(now: clock.monotonic())
    else {
      if !hasTold {
        publisher.logger.warning(
          "programme \(program) of \(publisher.remoteAddress) is not taken: its name is too long, or too many came",
          metadata: publisher.metadata(of: stream))
      }
      hasTold = true
      return nil
    }
    let new = LatePublication(
      name, of: publisher, key: key, software: software, origin: .peer, clock: clock, loop: loop)
    new.closed = { [publisher] reason in
      publisher.logger.warning(
        "programme \(program) of \(publisher.remoteAddress) is not taken: \(reason)",
        metadata: publisher.metadata(of: name))
    }
    publications[program] = new
    return new
  }
}
